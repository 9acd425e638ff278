"""Compose a cron expression from sets of allowed values; it matches only when *all* of them do.

Cron itself takes a day when either day field matches; APScheduler and Celery want both. If no expression can say
"both", the conversion is refused: a schedule must not fire on other days than before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise

from solocron.errors import InvalidError

__all__ = ["Fields", "expression"]

_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_DAYS, _MONTHS, _WEEK = range(1, 32), range(1, 13), range(7)
_BLOCKS = tuple(frozenset(range(first, min(first + 7, 32))) for first in range(1, 32, 7))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The allowed values; weekdays count from Sunday = 0. `places` are cron's own words such as `FRI#2` and `5L`."""

    seconds: frozenset[int] = frozenset({0})
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int] = frozenset(_DAYS)
    last_day: bool = False
    places: tuple[str, ...] = ()
    months: frozenset[int] = frozenset(_MONTHS)
    weekdays: frozenset[int] = frozenset(_WEEK)


def expression(fields: Fields) -> str:
    """Return five fields, or six if seconds are not just 0."""
    day, weekday = _day_fields(fields)
    # A minute or hour field that begins with `*` makes the whole expression follow the wall clock through DST changes,
    # which a list of fixed times should not: `*/n` there only beside a plain `*`.
    follows = len(fields.minutes) == 60 or len(fields.hours) == 24
    parts = [
        _numbers(fields.minutes, range(60), star=follows),
        _numbers(fields.hours, range(24), star=follows),
        day,
        _numbers(fields.months, _MONTHS, star=True),
        weekday,
    ]
    seconds = [] if fields.seconds == {0} else [_numbers(fields.seconds, range(60), star=True)]
    return " ".join(seconds + parts)


def _day_fields(fields: Fields) -> tuple[str, str]:
    every_day = fields.days == frozenset(_DAYS)
    any_weekday = fields.weekdays == frozenset(_WEEK)
    if every_day:
        return "*", _week(fields.weekdays)
    day = _numbers(fields.days, _DAYS) if fields.days else ""
    day = ",".join(filter(None, (day, "L" * fields.last_day)))
    if any_weekday:
        # Numbers and places together are "either": exactly what cron makes of two restricted day fields.
        return day or "*", ",".join(fields.places) or "*"
    if not fields.places and not fields.last_day:
        both = _both(fields.days, fields.weekdays)
        if both is not None:
            return both
    raise InvalidError(
        f"day {','.join([day, *fields.places]).strip(',')} and day of week {_week(fields.weekdays)} must both match, "
        "which no cron expression can say: cron runs when either does. Nothing was converted; keep one of them and "
        "test the other inside the function."
    )


def _both(days: frozenset[int], weekdays: frozenset[int]) -> tuple[str, str] | None:
    """Say "and" in cron: with a day field that begins with `*`, or with the n-th weekday of the month."""
    step = _star(days, _DAYS)
    if step is not None:
        return f"*/{step}", _week(weekdays)
    step = _star(weekdays, _WEEK)
    if step is not None:
        return _numbers(days, _DAYS), f"*/{step}"
    blocks = [number for number, block in enumerate(_BLOCKS, start=1) if block <= days]
    if frozenset().union(*(_BLOCKS[number - 1] for number in blocks)) == days:
        return "*", ",".join(f"{_WEEKDAYS[day]}#{number}" for number in blocks for day in sorted(weekdays))
    return None


def _star(values: frozenset[int], whole: Collection[int]) -> int | None:
    """Return the n for which these are `*/n`, None if there is none."""
    low = min(whole)
    for step in range(2, len(whole) + 1):
        if values == {value for value in whole if (value - low) % step == 0}:
            return step
    return None


def _numbers(values: frozenset[int], whole: Collection[int], *, star: bool = False) -> str:
    if values == frozenset(whole):
        return "*"
    if star and len(values) > 2 and (every := _star(values, whole)) is not None:
        return f"*/{every}"
    if not values:
        raise InvalidError("a field allows no value at all, so it would never fire; nothing was converted.")
    ordered = sorted(values)
    steps = {b - a for a, b in pairwise(ordered)}
    if len(ordered) > 2 and len(steps) == 1 and (step := steps.pop()) > 1:
        return f"{ordered[0]}-{ordered[-1]}/{step}"
    return ",".join(f"{a}" if a == b else f"{a},{b}" if b == a + 1 else f"{a}-{b}" for a, b in _ranges(ordered))


def _week(values: frozenset[int]) -> str:
    """Return names from Monday on, so that the expression does not depend on the first day of a week."""
    if values == frozenset(_WEEK):
        return "*"
    if not values:
        raise InvalidError("no weekday is allowed, so it would never fire; nothing was converted.")
    found = []
    for a, b in _ranges(sorted(value for value in values if value)):
        between = "," if b == a + 1 else "-"
        found.append(_WEEKDAYS[a] if a == b else f"{_WEEKDAYS[a]}{between}{_WEEKDAYS[b]}")
    return ",".join([*found, *(["SUN"] if 0 in values else [])])


def _ranges(ordered: Iterable[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for value in ordered:
        if found and found[-1][1] == value - 1:
            found[-1] = (found[-1][0], value)
        else:
            found.append((value, value))
    return found
