"""Calendars as callers see them: the view of a calendar, and sentences about what one does to a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from solocron.clock import SECOND, from_us
from solocron.errors import NotFoundError
from solocron.near import did_you_mean
from solocron.schedules import WEEKDAYS, Calendar, Calendared, load_zone

__all__ = ["CalendarView", "notes_of", "unknown_calendar", "view"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarView:
    """A calendar as it stands: its latest revision."""

    name: str
    revision: int
    weekend: tuple[str, ...]
    holidays: Mapping[date, str]
    jobs: tuple[str, ...]
    """Jobs that were put under this revision by the call that returned it."""


def view(calendar: Calendar, jobs: Iterable[str] = ()) -> CalendarView:
    return CalendarView(
        name=calendar.name,
        revision=calendar.revision,
        weekend=tuple(WEEKDAYS[day] for day in sorted(calendar.weekend)),
        holidays=dict(calendar.holidays),
        jobs=tuple(jobs),
    )


def notes_of(rule: Calendared, begin: int, end: int) -> list[str]:
    """Return the effects of a calendar on a schedule from `begin` to a day after `end`; a sentence each."""
    zone = load_zone(rule.zone).info

    def shown(us: int) -> str:
        return f"{from_us(us).astimezone(zone):%a %Y-%m-%d %H:%M}"

    notes = []
    for one in rule.touched(begin, end + 86_400 * SECOND, 100):
        done = "is left out" if one.at is None else f"is moved to {shown(one.at)}"
        notes.append(f"{shown(one.was)} {done}: {one.why} ({rule.calendar.name})")
    return notes


def unknown_calendar(calendar: str, known: Iterable[str], *, job: str, untouched: str) -> NotFoundError:
    hint = did_you_mean(calendar, known, f"make it with scheduler.calendar({calendar!r}, ...).")
    return NotFoundError(f"{job} names the calendar {calendar!r}, which is not in the store; {hint} {untouched}")
