"""Business calendars as people give them: days of the week, single days, a country; checked, saved as a revision."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime

from solocron.clock import SECOND, from_us
from solocron.engine.calendars import Calendars
from solocron.errors import InvalidError, MissingExtra, NotFoundError, StoreError
from solocron.jobs.checks import check_name, check_names
from solocron.model.change import Kind
from solocron.model.documents.calendar import announce, document_of, keep
from solocron.schedules import WEEKDAYS, Calendar, Calendared, load_zone
from solocron.stores.contract import Named, Verdict

__all__ = ["CalendarView", "days_off", "notes_of", "save", "unknown_calendar", "view"]

YEARS = 10
"""How far ahead a country's holidays are written down; call it again in good time."""
MOST = 5_000
"""Days off that one calendar may name."""
_TRIES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarView:
    """A calendar as it stands: its latest revision."""

    name: str
    revision: int
    weekend: tuple[str, ...]
    holidays: Mapping[date, str]
    jobs: tuple[str, ...]
    """The jobs that were put under this revision by the call that answered with it."""


def view(calendar: Calendar, jobs: Iterable[str] = ()) -> CalendarView:
    return CalendarView(
        name=calendar.name,
        revision=calendar.revision,
        weekend=tuple(WEEKDAYS[day] for day in sorted(calendar.weekend)),
        holidays=dict(calendar.holidays),
        jobs=tuple(jobs),
    )


def notes_of(rule: Calendared, begin: int, end: int) -> list[str]:
    """What a calendar does to the slots of a schedule from `begin` to a day after `end`; a sentence each."""
    zone = load_zone(rule.zone).info

    def shown(us: int) -> str:
        return f"{from_us(us).astimezone(zone):%a %Y-%m-%d %H:%M}"

    notes = []
    for one in rule.touched(begin, end + 86_400 * SECOND, 100):
        done = "is left out" if one.at is None else f"is moved to {shown(one.at)}"
        notes.append(f"{shown(one.was)} {done}: {one.why} ({rule.calendar.name})")
    return notes


def days_off(
    name: str,
    *,
    weekend: Iterable[str],
    holidays: Iterable[date] | Mapping[date, str],
    country: str | None,
    subdivision: str | None,
    now: int,
) -> Calendar:
    """The calendar that is asked for, without a revision yet."""
    check_name(name, "calendar")
    days = check_names(weekend, "weekend", untouched="Nothing was saved.")
    for word in days:
        if word not in WEEKDAYS:
            raise InvalidError(f"weekend={word!r:.40} is no day; choose from {', '.join(WEEKDAYS)}. Nothing was saved.")
    found: dict[date, str] = {}
    if country is not None:
        found |= _of_country(name, country, subdivision, from_us(now).year)
    elif subdivision is not None:
        raise InvalidError("subdivision= needs a country=; nothing was saved.")
    given = holidays.items() if isinstance(holidays, Mapping) else ((day, "holiday") for day in holidays)
    for day, said in given:
        if not isinstance(day, date) or isinstance(day, datetime):
            raise InvalidError(
                f"holidays: {day!r:.60} is no date; hand over dates, such as date(2027, 5, 1). Nothing was saved."
            )
        found[day] = str(said)
    if len(found) > MOST:
        raise InvalidError(f"calendar {name}: {len(found)} days off, more than {MOST}; nothing was saved.")
    return Calendar.make(name, 0, frozenset(WEEKDAYS.index(day) for day in days), found)


def _of_country(name: str, country: str, subdivision: str | None, year: int) -> dict[date, str]:
    """The public holidays of a country from last year on, as the `holidays` package has them today."""
    try:
        import holidays
    except ModuleNotFoundError:
        raise MissingExtra(
            f"country={country!r} needs the package 'holidays': pip install \"solocron[calendars]\". Nothing was saved."
        ) from None
    years = range(year - 1, year + YEARS)
    try:
        found = holidays.country_holidays(country, subdiv=subdivision, years=years)
    except NotImplementedError as error:
        raise InvalidError(f"calendar {name}: {error}; nothing was saved.") from None
    return {day: str(said) for day, said in found.items()}


def save(
    calendars: Calendars, wanted: Calendar, *, late_for: int, known: Calendar | None
) -> tuple[Calendar, list[str]]:
    """Write the content as a revision, unless it is the latest already, and put its jobs under it.

    The revision is written before it is announced, and announced before jobs name it: who meets its number finds it.
    """
    store, revision = calendars.store, 0 if known is None else known.revision
    if known is None or known.content() != wanted.content():
        for _ in range(_TRIES):
            revision += 1
            made = Calendar.make(wanted.name, revision, wanted.weekend, wanted.holidays)
            which = Named(Kind.CALENDAR, (document_of(wanted.name, revision),))
            kept = store.update(which, lambda doc, now, made=made: keep(doc, body=made.to_json()))  # type: ignore[misc]
            if kept.results[0].verdict is Verdict.DECLINED:
                continue  # another client changes the calendar just now, or died while it did
            if kept.results[0].verdict is Verdict.APPLIED and _announced(calendars, wanted.name, revision):
                break
            revision -= 1
        else:
            raise StoreError(f"calendar {wanted.name} could not be saved: others keep changing it; try again.")
        known = made
    calendars.fetch([(known.name, known.revision)])
    return known, calendars.follow(late_for)


def _announced(calendars: Calendars, name: str, revision: int) -> bool:
    for _ in range(_TRIES):
        which = Named(Kind.CALENDAR, (name,))
        result = calendars.store.update(which, lambda doc, now: announce(doc, revision=revision)).results[0]
        if result.verdict in (Verdict.APPLIED, Verdict.DECLINED):
            return True  # declined: a later one was announced, which is as if it had come right after this
    return False


def unknown_calendar(calendar: str, known: Iterable[str], *, job: str, untouched: str) -> NotFoundError:
    close = difflib.get_close_matches(calendar, sorted(known), n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"make it with scheduler.calendar({calendar!r}, ...)."
    return NotFoundError(f"{job} names the calendar {calendar!r}, which is not in the store; {hint} {untouched}")
