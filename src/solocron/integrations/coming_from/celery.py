"""From what Celery beat was told to a declaration: weekdays count from Sunday = 0, and both day fields must match.

Hand over a `crontab` object or its fields, a number of seconds, a `timedelta`, or a whole entry of `beat_schedule`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta, tzinfo
from typing import Any

from solocron.errors import Invalid
from solocron.integrations.coming_from.compose import Fields, expression
from solocron.integrations.coming_from.converted import Converted, zone_name
from solocron.schedules import Cron, Every

__all__ = ["from_celery"]

_LIMITS = {"minute": (0, 59), "hour": (0, 23), "day_of_month": (1, 31), "month_of_year": (1, 12), "day_of_week": (0, 6)}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_ITEM = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[0-9]+))?")
_PHASE = "every() counts from 1970-01-01 UTC, not from when beat was started: the period is the same, the phase is not."


def from_celery(schedule: Any = None, *, tz: str | tzinfo = "UTC", **fields: Any) -> Converted:
    """What beat would have sent; `tz` is `app.conf.timezone`, which is UTC unless somebody set it."""
    if isinstance(schedule, Mapping):
        return _entry(schedule, tz)
    if schedule is None:
        if not fields:
            raise Invalid("nothing was given: hand over a schedule, or the fields of a crontab. Nothing was converted.")
        unknown = sorted(fields.keys() - _LIMITS.keys())
        if unknown:
            raise Invalid(f"a crontab has no {', '.join(unknown)}; it has {', '.join(_LIMITS)}. Nothing was converted.")
        return Converted(schedule=_cron({name: fields.get(name, "*") for name in _LIMITS}, tz))
    if fields:
        raise Invalid("give a schedule or the fields of a crontab, not both. Nothing was converted.")
    if isinstance(schedule, int | float | timedelta):
        return Converted(schedule=Every(schedule), notes=(_PHASE,))
    if all(hasattr(schedule, name) for name in _LIMITS):
        return Converted(schedule=_cron({name: getattr(schedule, name) for name in _LIMITS}, tz))
    if hasattr(schedule, "run_every"):
        return Converted(schedule=Every(schedule.run_every), notes=(_PHASE,))
    raise Invalid(
        f"{schedule!r:.80} is no crontab and no period; solar schedules have no counterpart. Nothing was converted."
    )


def _entry(entry: Mapping[str, Any], tz: str | tzinfo) -> Converted:
    """An entry of `beat_schedule`: its arguments become the payload, its expiry the latest start."""
    if "schedule" not in entry:
        raise Invalid("an entry of beat_schedule needs a schedule. Nothing was converted.")
    made = from_celery(entry["schedule"], tz=tz)
    options, notes = dict(made.options), list(made.notes)
    args, kwargs = entry.get("args"), entry.get("kwargs")
    if args or kwargs:
        options["payload"] = {"args": list(args or ()), "kwargs": dict(kwargs or {})}
        notes.append("args and kwargs: the function takes the run and reads run.payload['args'] and ['kwargs'].")
    told = dict(entry.get("options") or {})
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
    return Converted(schedule=made.schedule, options=options, notes=tuple(notes))


def _cron(fields: Mapping[str, Any], tz: str | tzinfo) -> Cron:
    values = {name: _values(name, given) for name, given in fields.items()}
    allowed = Fields(
        minutes=values["minute"],
        hours=values["hour"],
        days=values["day_of_month"],
        months=values["month_of_year"],
        weekdays=values["day_of_week"],
    )
    return Cron(expression(allowed), tz=zone_name(tz))


def _values(name: str, given: Any) -> frozenset[int]:
    """A number, a text in Celery's own grammar, or numbers; None is any."""
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
        raise Invalid(f"{name}={given!r:.60} is no number, text or set of numbers. Nothing was converted.")
    if not found or min(found) < low or max(found) > high:
        raise Invalid(f"{name}={given!r:.60} is outside {low} to {high}. Nothing was converted.")
    return frozenset(found)


def _item(name: str, item: str) -> list[int]:
    low, high = _LIMITS[name]
    match = _ITEM.fullmatch(item)
    if match is None or (match["step"] and (match["first"] is None) == (match["last"] is not None)):
        raise Invalid(f"{name}={item!r:.60} is no expression of Celery's. Nothing was converted.")
    if match["step"] and int(match["step"]) == 0:
        raise Invalid(f"{name}={item!r:.60} has a step of 0. Nothing was converted.")
    if match["first"] is None:
        span = list(range(low, high + 1))
    else:
        first = _number(name, match["first"])
        last = first if match["last"] is None else _number(name, match["last"])
        # "22-2" and "fri-mon" go round the end, as Celery has it.
        span = list(range(first, last + 1)) if first <= last else [*range(first, high + 1), *range(low, last + 1)]
    return span[:: int(match["step"] or 1)]


def _number(name: str, text: str) -> int:
    """Numbers, and the first three letters of a name: all that Celery looks at."""
    if text.isdigit():
        return int(text)
    names = _WEEKDAYS if name == "day_of_week" else _MONTHS if name == "month_of_year" else ()
    if text[:3] not in names:
        raise Invalid(f"{name}: {text!r:.60} is not known. Nothing was converted.")
    return names.index(text[:3]) + (name == "month_of_year")
