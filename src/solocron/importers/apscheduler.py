"""Convert schedules of APScheduler 3: weekdays count from Monday = 0 there, and all fields must match.

Pass the arguments of `add_job` after the function: a trigger's name and its fields, or a trigger object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from solocron.errors import InvalidError
from solocron.importers.bounds import apscheduler_bounds
from solocron.importers.compose import Fields, expression
from solocron.importers.converted import Converted, foreign_zone_name
from solocron.model.policy import allow
from solocron.schedules import At, Cron, Every, load_zone

__all__ = ["from_apscheduler"]

_ORDER = ("year", "month", "day", "week", "day_of_week", "hour", "minute", "second")
_LEAST = {"month": "1", "day": "1", "hour": "0", "minute": "0", "second": "0"}
"""The value of a field when every given field is more significant; fields above a given one are `*`."""
_LIMITS = {"month": (1, 12), "day": (1, 31), "day_of_week": (0, 6), "hour": (0, 23), "minute": (0, 59)}
_LIMITS["second"] = _LIMITS["minute"]
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NAMES = {
    "month": {name: n for n, name in enumerate(_MONTHS, 1)},
    "day_of_week": {n: i for i, n in enumerate(_WEEKDAYS)},
}
_ITEM = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[0-9]+))?")
_PLACE = re.compile(r"(1st|2nd|3rd|4th|5th|last) +(\w+)")
_SPANS = ("weeks", "days", "hours", "minutes", "seconds")
_IGNORED = ("name", "replace_existing", "jobstore", "executor")


def from_apscheduler(trigger: Any, **told: Any) -> Converted:
    """Convert `add_job(function, trigger, **told)`; refuse what would fire at other instants."""
    notes: list[str] = []
    options = _options(told, notes)
    if isinstance(trigger, str):
        kind, fields = trigger, {key: value for key, value in told.items() if value is not None}
    else:
        kind, fields = _taken_apart(trigger)
        fields |= {key: value for key, value in told.items() if value is not None}
    makers: dict[str, Callable[[dict[str, Any], list[str]], Cron | Every | At]]
    makers = {"cron": _cron, "interval": _interval, "date": _date}
    if kind not in makers:
        raise InvalidError(
            f"trigger {kind!r:.60} is not known; give 'cron', 'interval' or 'date'. Nothing was converted."
        )
    if "jitter" in fields:
        options["spread"] = timedelta(seconds=fields.pop("jitter"))
        notes.append("jitter was random for each run; spread is one offset per job, the same on every node.")
    if kind != "date":
        bounds, said = apscheduler_bounds(fields, fields.get("timezone"), period=_period(fields))
        options |= bounds
        notes += said
    schedule = makers[kind](fields, notes)
    if fields:
        raise InvalidError(f"{kind} has no {', '.join(sorted(fields))} that could be converted. Nothing was converted.")
    return Converted(schedule=schedule, options=_readable(options), notes=tuple(notes))


def _taken_apart(trigger: Any) -> tuple[str, dict[str, Any]]:
    """Return the arguments that a trigger object was made with."""
    common = {key: value for key in ("timezone", "jitter", "end_date") if (value := getattr(trigger, key, None))}
    if hasattr(trigger, "fields"):
        given = {field.name: str(field) for field in trigger.fields}
        start = {"start_date": trigger.start_date} if trigger.start_date else {}
        # Every field is written out, so that none of them gets a default.
        return "cron", {key: value for key, value in given.items() if value != "*" or key in _LEAST} | start | common
    if hasattr(trigger, "interval"):
        return "interval", {"seconds": trigger.interval.total_seconds(), "start_date": trigger.start_date, **common}
    if hasattr(trigger, "run_date"):
        return "date", {"run_date": trigger.run_date}
    raise InvalidError(
        f"{trigger!r:.80} is not a cron, interval or date trigger of APScheduler 3. Nothing was converted."
    )


def _options(told: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Take the options of `add_job` that have a counterpart here out of `told`."""
    options: dict[str, Any] = {}
    if (name := told.pop("id", None)) is not None:
        options["name"] = name
    if (most := told.pop("max_instances", None)) not in (None, 1):
        options["overlap"] = allow(most)
    if (coalesce := told.pop("coalesce", None)) is False:
        options["catch_up"] = "all"
    elif coalesce:
        options["catch_up"] = "latest"
    if (grace := told.pop("misfire_grace_time", None)) is not None:
        options["start_within"] = timedelta(seconds=grace)
    args, kwargs = told.pop("args", None), told.pop("kwargs", None)
    if args or kwargs:
        options["payload"] = {"args": list(args or ()), "kwargs": dict(kwargs or {})}
        notes.append("args and kwargs: the function takes the run and reads run.payload['args'] and ['kwargs'].")
    for key in _IGNORED:
        told.pop(key, None)
    return options


def _readable(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return whole seconds as a string such as "90s", as one would write it in a declaration."""
    return {
        key: f"{value.total_seconds():g}s" if isinstance(value, timedelta) else value for key, value in options.items()
    }


# --- interval and date -----------------------------------------------------------------------------------------------


def _interval(fields: dict[str, Any], notes: list[str]) -> Every:
    period = _period(fields)
    for name in (*_SPANS, "timezone"):
        fields.pop(name, None)
    notes.append("every() counts from 1970-01-01 UTC, not from a start: the period is the same, the phase is not.")
    return Every(period)


def _period(fields: Mapping[str, Any]) -> timedelta:
    return timedelta(**{key: fields[key] for key in _SPANS if key in fields})


def _date(fields: dict[str, Any], notes: list[str]) -> At:
    when = fields.pop("run_date", None)
    zone = fields.pop("timezone", None)
    if isinstance(when, str):
        when = datetime.fromisoformat(when)
    if not isinstance(when, datetime):
        raise InvalidError(
            "a date trigger needs run_date; to run now, use scheduler.trigger(job). Nothing was converted."
        )
    if when.tzinfo is None:
        if zone is None:
            raise InvalidError("run_date has no zone; give timezone= as well. Nothing was converted.")
        when = when.replace(tzinfo=load_zone(foreign_zone_name(zone)).info)
    return At(when)


# --- cron ------------------------------------------------------------------------------------------------------------


def _cron(fields: dict[str, Any], notes: list[str]) -> Cron:
    zone = fields.pop("timezone", None)
    if zone is None:
        raise InvalidError(
            "timezone is needed: APScheduler took its scheduler's zone, by default that of the machine, and here it "
            "would be UTC. Nothing was converted."
        )
    given = {name: str(fields.pop(name)).strip().lower() for name in _ORDER if name in fields}
    for name in ("year", "week"):
        if given.pop(name, "*") != "*":
            raise InvalidError(
                f"{name}: a cron expression knows no {name}. Nothing was converted; test it in the function."
            )
    if not given:
        raise InvalidError("no field was given. Nothing was converted.")
    least = max(_ORDER.index(name) for name in given)
    text = {name: given.get(name, _LEAST.get(name, "*") if _ORDER.index(name) > least else "*") for name in _ORDER}
    days, last_day, places = _days(text["day"])
    allowed = Fields(
        seconds=_values("second", text["second"]),
        minutes=_values("minute", text["minute"]),
        hours=_values("hour", text["hour"]),
        days=days,
        last_day=last_day,
        places=places,
        months=_values("month", text["month"]),
        weekdays=frozenset((day + 1) % 7 for day in _values("day_of_week", text["day_of_week"])),
    )
    if any(item.isdigit() for item in re.split(r"[,/-]", text["day_of_week"])):
        notes.append("day_of_week counted from Monday = 0; the expression names the days instead.")
    return Cron(expression(allowed), tz=foreign_zone_name(zone))


def _days(text: str) -> tuple[frozenset[int], bool, tuple[str, ...]]:
    """Read numbers, the last day, and places such as `2nd fri`, in any mixture."""
    numbers: frozenset[int] = frozenset()
    last, places = False, []
    for item in re.split(r" *, *", text):
        place = _PLACE.fullmatch(item)
        if place is not None:
            weekday = _number("day_of_week", place[2], item)
            cron_day = (weekday + 1) % 7
            places.append(f"{cron_day}L" if place[1] == "last" else f"{_WEEKDAYS[weekday].upper()}#{place[1][0]}")
        elif item == "last":
            last = True
        else:
            numbers |= _values("day", item)
    return numbers, last, tuple(places)


def _values(name: str, text: str) -> frozenset[int]:
    low, high = _LIMITS[name]
    found: set[int] = set()
    for item in re.split(r" *, *", text):
        match = _ITEM.fullmatch(item)
        if match is None or (match["step"] and match["first"] and not match["first"].isdigit()):
            # APScheduler reads "mon-fri/2" as "mon-fri": it ignores the step.
            raise InvalidError(f"{name}={item!r:.60} is not an expression of APScheduler. Nothing was converted.")
        first = low if match["first"] is None else _number(name, match["first"], item)
        open_end = match["first"] is None or (match["step"] and not match["last"])
        last = high if open_end else _number(name, match["last"] or match["first"], item)
        if not low <= first <= last <= high or match["step"] == "0":
            raise InvalidError(
                f"{name}={item!r:.60} is outside {low} to {high}, or runs backwards. Nothing was converted."
            )
        found.update(range(first, last + 1, int(match["step"] or 1)))
    return frozenset(found)


def _number(name: str, text: str, item: str) -> int:
    names = _NAMES.get(name, {})
    if text in names:
        return names[text]
    if not text.isdigit():
        raise InvalidError(f"{name}={item!r:.60}: {text!r} is not known. Nothing was converted.")
    return int(text)
