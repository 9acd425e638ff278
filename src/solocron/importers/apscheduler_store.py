"""Read the job store of APScheduler 3 (SQLAlchemy): pickled jobs, read without running anything of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from solocron.errors import InvalidError
from solocron.importers.apscheduler import from_apscheduler
from solocron.importers.database import Row, Table
from solocron.importers.entry import ImportedJob, RefusedEntry, each, job_name, named_once
from solocron.importers.inert_pickle import Inert, PickledName, read_inert
from solocron.jobs.checks import check_payload
from solocron.schedules import At

__all__ = ["read_job_store"]

_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_PLACES = ("1st", "2nd", "3rd", "4th", "5th", "last")
_DEFAULT_GRACE = 1
_MOST_VALUES = 20_000
"""Values of the arguments of one job; a pickle of a kilobyte can name a list within a list a billion times."""


def read_job_store(table: Table, *, name: str = "apscheduler_jobs") -> list[ImportedJob | RefusedEntry]:
    """Return a job for each row, by id."""
    rows = sorted(table(name), key=lambda row: str(row.get("id")))
    if rows and not {"id", "next_run_time", "job_state"} <= rows[0].keys():
        raise InvalidError(
            f"{name} is not a table of APScheduler 3: it has {', '.join(rows[0])}. Nothing was imported."
        )
    return list(named_once(each(_entries(rows))))


def _entries(rows: list[Row]) -> Iterator[Any]:
    for row in rows:
        yield str(row["id"]), partial(_job, row)


def _job(row: Row) -> ImportedJob:
    state = read_inert(bytes(row["job_state"]))
    if not isinstance(state, dict) or not isinstance(state.get("trigger"), Inert):
        raise InvalidError("its state is not that of a job of APScheduler 3.")
    name, notes = job_name(str(row["id"]))
    function = state.get("func")
    if not isinstance(function, str) or not function:
        raise InvalidError("it names no function that can be imported by name.")
    handler, renamed = job_name(function)
    if renamed:
        raise InvalidError(
            f"its function is {function!r:.80}, which no handler can be named: letters, digits and _ . : -."
        )
    kind, fields = _trigger(state["trigger"])
    told = {key: state.get(key) for key in ("max_instances", "coalesce", "misfire_grace_time")}
    if told["misfire_grace_time"] == _DEFAULT_GRACE:
        told["misfire_grace_time"] = None
        notes = (*notes, "misfire_grace_time was the default of 1 s and is left out: a late slot still runs.")
    made = from_apscheduler(kind, **{key: value for key, value in {**fields, **told}.items() if value is not None})
    if isinstance(made.schedule, At) and made.schedule.moment <= datetime.now(UTC):
        raise InvalidError("its time is over.")
    payload = {"args": list(state.get("args") or ()), "kwargs": dict(state.get("kwargs") or {})}
    _refuse_objects(payload)
    options = {**made.options, "payload": check_payload(payload, whose=name)}
    return ImportedJob(
        name=name,
        handler=handler,
        schedule=made.schedule,
        options=options,
        notes=(*notes, *made.notes),
        paused=row["next_run_time"] is None,
    )


def _trigger(trigger: Inert) -> tuple[str, dict[str, Any]]:
    """Return the arguments that a stored trigger was made with."""
    kind = trigger.origin.rpartition(".")[2]
    state = trigger.state
    if kind not in ("CronTrigger", "IntervalTrigger", "DateTrigger") or not isinstance(state, dict):
        raise InvalidError(f"its trigger is a {kind}, which has no counterpart.")
    if kind == "DateTrigger":
        return "date", {"run_date": state.get("run_date")}
    fields = {key: state.get(key) for key in ("timezone", "start_date", "end_date")}
    fields["jitter"] = state.get("jitter") or None
    if kind == "IntervalTrigger":
        return "interval", {**fields, "seconds": state["interval"].total_seconds()}
    fields |= {field.state["name"]: ",".join(map(_text, field.state["expressions"])) for field in state["fields"]}
    return "cron", {key: value for key, value in fields.items() if key not in ("year", "week") or value != "*"}


def _text(expression: Inert) -> str:
    """Write one expression of a field as APScheduler does; weekdays by name, because it counts them from Monday."""
    kind, state = expression.origin.rpartition(".")[2], expression.state
    if kind == "LastDayOfMonthExpression":
        return "last"
    if kind == "WeekdayPositionExpression":
        return f"{_PLACES[state['option_num']]} {_WEEKDAYS[state['weekday']]}"
    step = f"/{state['step']}" if state.get("step") else ""
    if kind == "AllExpression":
        return f"*{step}"
    if kind not in ("RangeExpression", "WeekdayRangeExpression", "MonthRangeExpression"):
        raise InvalidError(f"its trigger has a {kind}, which is not known.")
    ends = [state["first"]] if state["last"] in (None, state["first"]) else [state["first"], state["last"]]
    if kind == "WeekdayRangeExpression":
        ends = [_WEEKDAYS[end] for end in ends]
    return "-".join(map(str, ends)) + step


def _refuse_objects(value: Any) -> None:
    """Refuse arguments that are not JSON, and such as grow without bound when they are written out."""
    left, waiting = _MOST_VALUES, [value]
    while waiting:
        one = waiting.pop()
        left -= 1
        if not left:
            raise InvalidError("its arguments are too many.")
        if isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            waiting += one
        elif isinstance(one, PickledName):
            raise InvalidError(f"one of its arguments is {one.origin}, which is code; a payload is JSON.")
        elif isinstance(one, Inert):
            raise InvalidError(f"one of its arguments is a {one.origin}; a payload is JSON.")
        elif one is not None and not isinstance(one, str | int | float | bool):
            raise InvalidError(f"one of its arguments is a {type(one).__name__}; a payload is JSON.")
