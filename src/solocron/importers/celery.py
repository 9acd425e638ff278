"""Convert schedules of Celery beat: weekdays count from Sunday = 0, and both day fields must match.

Pass a `crontab` object or its fields, a number of seconds, a `timedelta`, a whole entry of `beat_schedule`, or a
row of django-celery-beat: a `PeriodicTask`, or one of its schedules.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any

from solocron.errors import InvalidError
from solocron.importers.bounds import beat_bounds
from solocron.importers.compose import Fields, expression
from solocron.importers.converted import Converted, foreign_zone_name
from solocron.schedules import At, Cron, Every

__all__ = ["BeatEntry", "from_celery", "read_beat_entry"]

_LIMITS = {"minute": (0, 59), "hour": (0, 23), "day_of_month": (1, 31), "month_of_year": (1, 12), "day_of_week": (0, 6)}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_ITEM = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[0-9]+))?")
_PHASE = "every() counts from 1970-01-01 UTC, not from when beat was started: the period is the same, the phase is not."


def from_celery(schedule: Any = None, *, tz: str | tzinfo | None = None, **fields: Any) -> Converted:
    """Convert what beat would send; `tz` is `app.conf.timezone`. A crontab of django-celery-beat keeps its own zone."""
    if isinstance(schedule, Mapping):
        return _converted(read_beat_entry(schedule, tz=tz))
    if schedule is None:
        if not fields:
            raise InvalidError("nothing was given: pass a schedule, or the fields of a crontab. Nothing was converted.")
        unknown = sorted(fields.keys() - _LIMITS.keys())
        if unknown:
            raise InvalidError(
                f"a crontab has no {', '.join(unknown)}; it has {', '.join(_LIMITS)}. Nothing was converted."
            )
        return Converted(schedule=_cron({name: fields.get(name, "*") for name in _LIMITS}, tz or "UTC"))
    if fields:
        raise InvalidError("give a schedule or the fields of a crontab, not both. Nothing was converted.")
    if isinstance(schedule, int | float | timedelta):
        return Converted(schedule=Every(schedule), notes=(_PHASE,))
    if hasattr(schedule, "event"):
        raise InvalidError(
            f"{str(schedule.event)!r:.80} is solar, which has no counterpart: give it a cron expression. "
            "Nothing was converted."
        )
    if hasattr(schedule, "one_off"):
        return _converted(read_beat_entry(schedule, tz=tz))
    schedule = getattr(schedule, "schedule", schedule)  # of a database row, the schedule that beat uses
    if all(hasattr(schedule, name) for name in _LIMITS):
        zone, notes = _zone(schedule, tz)
        return Converted(schedule=_cron({name: getattr(schedule, name) for name in _LIMITS}, zone), notes=notes)
    if hasattr(schedule, "run_every"):
        return Converted(schedule=Every(schedule.run_every), notes=(_PHASE,))
    if hasattr(schedule, "clocked_time"):
        return Converted(schedule=At(schedule.clocked_time))
    raise InvalidError(f"{schedule!r:.80} is not a crontab, a period or a clocked time. Nothing was converted.")


def _zone(crontab: Any, tz: str | tzinfo | None) -> tuple[str | tzinfo, tuple[str, ...]]:
    """Return the crontab's own zone if it has one, or the zone of its clock, else the caller's, else the application's.

    Celery compares the fields with what `nowfun` returns, in the zone of that.
    """
    own = getattr(crontab, "tz", None)
    given = own is not None and "tz" in inspect.signature(type(crontab)).parameters
    clock = None if given else _clock_zone(crontab)
    if clock is not None:
        own = clock
    elif own is None or (tz is not None and not given):
        return tz or "UTC", ()
    if tz is None or foreign_zone_name(tz) == foreign_zone_name(own):
        return own, ()
    return own, (
        f"the crontab has a zone of its own, {foreign_zone_name(own)}, so tz={foreign_zone_name(tz)} was not used.",
    )


def _clock_zone(crontab: Any) -> tzinfo | None:
    """Return the zone of the instants that `nowfun` of a crontab returns; None if it has no such clock, or no zone."""
    clock = getattr(crontab, "nowfun", None)
    if clock is None:
        return None
    try:
        now = clock()
    except Exception as error:
        raise InvalidError(f"nowfun of {crontab!r:.80} failed: {error!r:.100}. Nothing was converted.") from error
    return now.tzinfo if isinstance(now, datetime) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatEntry:
    """One entry of beat: the schedule, and the message that it sends."""

    schedule: Cron | Every | At
    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    options: dict[str, Any]
    """Options of the message, such as `queue` and `expires`."""
    bounds: Mapping[str, str] = field(default_factory=dict)
    """The options `starts` and `ends` of the job."""
    enabled: bool = True
    notes: tuple[str, ...] = ()


def read_beat_entry(given: Any, *, tz: str | tzinfo | None = None) -> BeatEntry:
    """Read an entry of `beat_schedule`, or a `PeriodicTask` of django-celery-beat as its scheduler reads it."""
    if isinstance(given, Mapping):
        return _entry(given, tz)
    try:
        return _task(given, tz)
    except InvalidError as error:
        raise InvalidError(f"periodic task {given.name!r:.80}: {error}") from None


def _task(task: Any, tz: str | tzinfo | None) -> BeatEntry:
    schedule = task.interval or task.crontab or task.solar or task.clocked
    if schedule is None:
        raise InvalidError("it has no schedule. Nothing was converted.")
    if task.one_off and not task.clocked:
        raise InvalidError("one_off: a rule that fires once has no counterpart; use @at. Nothing was converted.")
    bounds, notes = beat_bounds(task.start_time, task.expires)
    told = {name: getattr(task, name) for name in ("queue", "exchange", "routing_key", "priority")}
    told |= {"expires": task.expire_seconds, "headers": _json(task, "headers")}
    entry = {
        "task": task.task,
        "schedule": schedule,
        "args": _json(task, "args"),
        "kwargs": _json(task, "kwargs"),
        "options": {name: value for name, value in told.items() if value is not None and value != {}},
    }
    made = _entry(entry, tz)
    return replace(made, enabled=bool(task.enabled), bounds=bounds, notes=(*made.notes, *notes))


def _json(task: Any, name: str) -> Any:
    """Decode arguments and headers, which are stored as JSON strings."""
    empty: list[Any] | dict[str, Any] = [] if name == "args" else {}
    try:
        return json.loads(getattr(task, name) or "null") or empty
    except ValueError:
        raise InvalidError(f"{name} is not JSON. Nothing was converted.") from None


def _entry(entry: Mapping[str, Any], tz: str | tzinfo | None) -> BeatEntry:
    if "schedule" not in entry:
        raise InvalidError("an entry of beat_schedule needs a schedule. Nothing was converted.")
    if isinstance(entry["schedule"], Mapping):
        raise InvalidError("the schedule of an entry is a mapping; give a crontab or a period. Nothing was converted.")
    made = from_celery(entry["schedule"], tz=tz)
    return BeatEntry(
        schedule=made.schedule,
        task=str(entry.get("task", "")),
        args=list(entry.get("args") or ()),
        kwargs=dict(entry.get("kwargs") or {}),
        options=dict(entry.get("options") or {}),
        notes=made.notes,
    )


def _converted(entry: BeatEntry) -> Converted:
    """Convert an entry: its arguments become the payload, its expiry the latest start, its queue the pool."""
    options: dict[str, Any] = dict(entry.bounds)
    notes = list(entry.notes)
    if entry.args or entry.kwargs:
        options["payload"] = {"args": entry.args, "kwargs": entry.kwargs}
        notes.append("args and kwargs: the function takes the run and reads run.payload['args'] and ['kwargs'].")
    told = dict(entry.options)
    expires = told.pop("expires", None)
    if isinstance(expires, int | float):
        options["start_within"] = f"{expires:g}s"
    elif expires is not None:
        notes.append("expires was an instant for every message; here start_within counts from each slot.")
    queue = told.pop("queue", None)
    if queue is not None:
        options["pool"] = str(queue)
    if told:
        notes.append(f"left out, because nothing is sent to a queue: {', '.join(sorted(map(str, told)))}.")
    if not entry.enabled:
        options["enabled"] = False
    return Converted(schedule=entry.schedule, options=options, notes=tuple(notes))


def _cron(fields: Mapping[str, Any], tz: str | tzinfo) -> Cron:
    values = {name: _values(name, given) for name, given in fields.items()}
    allowed = Fields(
        minutes=values["minute"],
        hours=values["hour"],
        days=values["day_of_month"],
        months=values["month_of_year"],
        weekdays=values["day_of_week"],
    )
    return Cron(expression(allowed), tz=foreign_zone_name(tz))


def _values(name: str, given: Any) -> frozenset[int]:
    """Read a number, a string in Celery's grammar, or numbers; None means any."""
    low, high = _LIMITS[name]
    if given is None:
        given = "*"
    if isinstance(given, int) and not isinstance(given, bool):
        found = {given}
    elif isinstance(given, str):
        found = {value for item in given.split(",") for value in _item(name, item.strip().lower())}
    elif isinstance(given, Iterable):
        found = {int(value) for value in given}
    else:
        raise InvalidError(
            f"{name}={given!r:.60} is not a number, a string or a set of numbers. Nothing was converted."
        )
    if not found or min(found) < low or max(found) > high:
        raise InvalidError(f"{name}={given!r:.60} is outside {low} to {high}. Nothing was converted.")
    return frozenset(found)


def _item(name: str, item: str) -> list[int]:
    low, high = _LIMITS[name]
    match = _ITEM.fullmatch(item)
    if match is None or (match["step"] and (match["first"] is None) == (match["last"] is not None)):
        raise InvalidError(f"{name}={item!r:.60} is not an expression of Celery. Nothing was converted.")
    if match["step"] and int(match["step"]) == 0:
        raise InvalidError(f"{name}={item!r:.60} has a step of 0. Nothing was converted.")
    if match["first"] is None:
        span = list(range(low, high + 1))
    else:
        first = _number(name, match["first"])
        last = first if match["last"] is None else _number(name, match["last"])
        # "22-2" and "fri-mon" wrap around the end, as in Celery.
        span = list(range(first, last + 1)) if first <= last else [*range(first, high + 1), *range(low, last + 1)]
    return span[:: int(match["step"] or 1)]


def _number(name: str, text: str) -> int:
    """Read a number or a name, of which Celery looks only at the first three letters."""
    if text.isdigit():
        return int(text)
    names = _WEEKDAYS if name == "day_of_week" else _MONTHS if name == "month_of_year" else ()
    if text[:3] not in names:
        raise InvalidError(f"{name}: {text!r:.60} is not known. Nothing was converted.")
    return names.index(text[:3]) + (name == "month_of_year")
