"""Explain a cron schedule in words: when it runs, what clock changes do to it, what may surprise its owner."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import timedelta

from cronsim import CronSim

from solocron.clock import from_us
from solocron.duration import to_us
from solocron.schedules.bounded import Bounded, rule_of
from solocron.schedules.contract import Schedule
from solocron.schedules.cron import DEFAULT_DST, Cron, new_year_of_the_zone_data
from solocron.schedules.describe import sentence
from solocron.schedules.field import ANY_TIME, FIELDS, Field
from solocron.schedules.native import MICRO
from solocron.schedules.parse import is_wildcard
from solocron.schedules.zone import ClockChange, load_zone

__all__ = ["describe", "dst_notes", "lint"]

_SHOWN = 3
_FOLDS = {"first": "the first time", "last": "the second time"}


def describe(schedule: Cron) -> str:
    """Describe when it runs, and where: "At 02:30 every day, America/New_York"."""
    return f"{sentence(schedule.fields)}, {schedule.zone}"


def dst_notes(schedule: Schedule, start_us: int, horizon: timedelta) -> list[str]:
    """Return a sentence for each clock change within `horizon` after `start_us` that skips or repeats a named time."""
    cron = rule_of(schedule)
    if not isinstance(cron, Cron) or cron.zone == "UTC" or cron.fields[2] == "*":
        return []  # every hour of the day is named: a missing or doubled hour does not surprise
    start, end = start_us // MICRO, (start_us + to_us(horizon)) // MICRO
    if isinstance(schedule, Bounded):
        start, end = max(start, schedule.starts_us // MICRO), min(end, schedule.ends_us // MICRO)
    return [note for change in load_zone(cron.zone).changes(start, end) for note in _note(cron, change)]


def lint(schedule: Schedule, start_us: int | None = None) -> list[str]:
    """Warn of what is allowed but seldom meant; clock changes are those of a year from `start_us`, or the data's."""
    cron = rule_of(schedule)
    if not isinstance(cron, Cron):
        return []
    if start_us is None:
        start_us = new_year_of_the_zone_data() * MICRO
    found = [note for field, text in zip(FIELDS, cron.fields, strict=True) for note in _uneven(field, text)]
    found += _days(*cron.fields[3:])
    if cron.dst != DEFAULT_DST and (cron.zone == "UTC" or is_wildcard(cron.fields)):
        found.append("dst has no effect here: it is for fixed times in a zone whose clocks are set.")
    return found + dst_notes(schedule, start_us, timedelta(days=366))


def _note(cron: Cron, change: ClockChange) -> Iterator[str]:
    """Describe a change. A gap is read by the clocks before it, a fold by those after it: from the lower reading up."""
    at, before, after = change
    first, beyond = sorted((at + before, at + after))
    readings = _readings(cron, first, beyond)
    if not readings:
        return
    date = f"{from_us(first * MICRO):%Y-%m-%d}"
    one = len(readings) == 1
    times = ", ".join(map(_clock, readings[:_SHOWN])) + (" and more" if len(readings) > _SHOWN else "")
    fixed = not is_wildcard(cron.fields)
    if after > before:
        missing = f"{date}: {times} {'does' if one else 'do'} not exist"
        made_up = f"{'runs' if one else 'run'} once{'' if one else ', together,'} at {_clock(beyond, since=first)}"
        yield f"{missing}, {made_up if fixed and cron.gap == 'run-after' else 'skipped'}."
    else:
        twice = f"{date}: {times} {'happens' if one else 'happen'} twice, {'runs' if one else 'run'}"
        both = not fixed or cron.fold == "both"
        yield f"{twice} both times." if both else f"{twice} once, {_FOLDS[cron.fold]}."


def _readings(cron: Cron, first: int, beyond: int) -> list[int]:
    """Return the first few readings that match."""
    found: list[int] = []
    at = cron.wall.ceil(first)
    while at < beyond and len(found) <= _SHOWN:
        found.append(at)
        at = cron.wall.ceil(at + 1)
    return found


def _clock(reading: int, since: int | None = None) -> str:
    """Return HH:MM, with seconds if there are any, and with the date if it differs from that of `since`."""
    moment = from_us(reading * MICRO)
    other_day = since is not None and moment.date() != from_us(since * MICRO).date()
    return f"{moment:%Y-%m-%d }" * other_day + f"{moment:%H:%M}" + f"{moment::%S}" * bool(moment.second)


def _uneven(field: Field, text: str) -> Iterator[str]:
    size = field.high - field.low + 1
    for item in text.split(","):
        star, _, step = item.partition("/")
        if star != "*" or not step or field.is_day:
            continue
        if int(step) >= size:
            yield f"{field.shown(item)}: a step of {step} leaves only {field.low}."
        elif size % int(step):
            yield f"{field.shown(item)}: {step} does not divide {size}, so the last interval is a shorter one."


def _days(day: str, month: str, weekday: str) -> Iterator[str]:
    if not day.startswith("*"):
        asked = CronSim(f"0 0 {day} {month} {weekday}", ANY_TIME)
        shortest = min(monthrange(2001, number)[1] for number in asked.months)
        if late := ", ".join(str(number) for number in sorted(asked.days) if number > shortest):
            yield f"the day of month field {day!r}: months without day {late} are left out; L is the last day."
    if day == "*" or weekday == "*":
        return
    if day.startswith("*") or weekday.startswith("*"):
        yield "both day fields are given and one begins with *: both must match, as in cron (croniter takes either)."
    else:
        yield "both day fields are given: it runs when either matches, as in cron, not only when both do."
