"""Jobs as data: `PUT` and `DELETE /jobs/{job}`. Only where editing is allowed; code is named, never sent."""

from __future__ import annotations

import re
from typing import Any

from solocron.errors import InvalidError, NotFoundError, ScheduleError
from solocron.jobs.job_spec import APART
from solocron.jobs.options import AddOptions
from solocron.model.policy import Backoff, CatchUp, Overlap, allow, catch_up_all
from solocron.schedules import Schedule, load
from solocron.service.audit import audited
from solocron.service.bodies import BodyField
from solocron.service.call import ApiCall
from solocron.service.shown import shown_job
from solocron.views import JobView

__all__ = ["DEFINITION", "put", "remove"]

_NOTHING = "Nothing was changed."
_SAMPLE = '{"kind": "every", "period": "1h"}'
_SPAN = {"type": ["number", "string", "null"]}
_TEXT = {"type": ["string", "null"]}
_WHOLE = {"type": ["integer", "null"]}
_OPTIONS: dict[str, dict[str, Any]] = {
    "tz": {"type": "string"},
    "dst": {"type": ["object", "null"]},
    "timeout": _SPAN,
    "retries": {"type": "integer"},
    "backoff": {"type": ["object", "null"]},
    "on_crash": {"type": "string"},
    "on_lost": {"type": "string"},
    "on_stuck": {"type": "string"},
    "overlap": {"type": "string"},
    "catch_up": {"type": ["string", "object"]},
    "start_within": _SPAN,
    "pool": {"type": "string"},
    "run_in": {"type": "string"},
    "hand_over": {"type": ["object", "null"]},
    "memory": {"type": ["integer", "string", "null"]},
    "cpu": _WHOLE,
    "pause_after": _WHOLE,
    "calendar": _TEXT,
    "on_holiday": _TEXT,
    "enabled": {"type": "boolean"},
    "payload": {},
    "shards": {"type": ["integer", "array", "null"], "items": {"type": "string"}},
    "nodes": {"type": ["integer", "string", "null"]},
    "prefer": _TEXT,
    "limit": _TEXT,
    "spread": _SPAN,
    "starts": _TEXT,
    "ends": _TEXT,
    "tags": {"type": "array", "items": {"type": "string"}},
    "owner": _TEXT,
    "runbook": _TEXT,
}
"""The types of the options; which values they may have, `add` says itself."""

DEFINITION: tuple[BodyField, ...] = (
    BodyField.text("handler", "the declared job, or the registered function, that it calls", most=128, required=True),
    BodyField.typed(
        "schedule",
        f"a cron expression, or an object as `spec` shows it: {_SAMPLE}",
        {"type": ["string", "object"], "maxLength": 200},
        required=True,
    ),
    *(BodyField.typed(name, "as `add` takes it", schema) for name, schema in _OPTIONS.items()),
    BodyField.text("note", "why, for the record", most=500),
)
assert set(_OPTIONS) == set(AddOptions.__annotations__)


def put(call: ApiCall) -> JobView:
    """Add a job, or make it equal to what is given; options that are left out have their defaults."""
    job, body = call.names["job"], dict(call.body)
    handler, schedule, note = body.pop("handler"), _schedule(body.pop("schedule")), body.pop("note")
    given = {name: value for name, value in body.items() if value is not None}
    for name, read in (("overlap", _overlap), ("catch_up", _catch_up), ("backoff", _backoff)):
        if name in given:
            given[name] = read(given[name])
    if isinstance(given.get("shards"), list):
        given["shards"] = tuple(given["shards"])
    with audited(call, "add", job, before=_summary(call, job), note=note) as act:
        view = call.writes.add(job, handler, schedule, given, by=call.who, note=note)
        act.after = _told(view)
    call.reads.forget_jobs()
    return shown_job(view)


def remove(call: ApiCall) -> JobView:
    """Remove a job: its waiting runs are cancelled, its running ones are asked to stop."""
    job, note = call.names["job"], call.given["note"]
    view = call.reads.job(job)
    with audited(call, "remove", job, before=_told(view), note=note):
        call.writes.remove(job, by=call.who, note=note)
    call.reads.forget_jobs()
    return shown_job(view)


def _summary(call: ApiCall, job: str) -> Any:
    try:
        return _told(call.reads.job(job))
    except NotFoundError:
        return None


def _told(view: JobView) -> dict[str, Any]:
    return {"handler": view.handler, "schedule": view.expression or view.schedule, "enabled": view.enabled}


def _schedule(given: Any) -> str | Schedule:
    if isinstance(given, str):
        return given
    try:
        found = load({key: value for key, value in given.items() if key not in APART})
    except (KeyError, TypeError, ValueError, AttributeError):  # a ScheduleError, about what is stored, is a ValueError
        raise ScheduleError(f"schedule: it is not one as `spec` shows it, such as {_SAMPLE}. {_NOTHING}") from None
    if found is None:
        raise ScheduleError(f"schedule: it is one that only code knows. {_NOTHING}")
    return found


def _overlap(given: str) -> Overlap | str:
    found = re.fullmatch(r"allow\(([0-9]{1,6})\)", given)
    return given if found is None else allow(int(found[1]))


def _catch_up(given: Any) -> CatchUp | str:
    if isinstance(given, str):
        return given
    if set(given) - {"limit", "within", "rate"}:
        raise InvalidError(f"catch_up: an object may have limit, within and rate. {_NOTHING}")
    try:
        return catch_up_all(**given)
    except TypeError:
        raise InvalidError(f"catch_up: limit is a number, within a duration, rate such as 10/m. {_NOTHING}") from None


def _backoff(given: dict[str, Any]) -> Backoff:
    if set(given) - {"first", "factor", "cap", "jitter"}:
        raise InvalidError(f"backoff: an object may have first, factor, cap and jitter. {_NOTHING}")
    try:
        return Backoff(**given)
    except TypeError:
        raise InvalidError(f"backoff: first and cap are durations, factor and jitter numbers. {_NOTHING}") from None
