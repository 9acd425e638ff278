"""Business calendars as people give them: days of the week, single days, a country; checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime

from solocron.clock import from_us
from solocron.errors import InvalidError, MissingExtra
from solocron.jobs.checks import check_name, check_names
from solocron.schedules import WEEKDAYS, Calendar

__all__ = ["days_off"]

YEARS = 10
"""Years ahead for which a country's holidays are stored; call it again in good time."""
MOST = 5_000
"""Days off that one calendar may name."""


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
            raise InvalidError(
                f"weekend={word!r:.40} is not a day; choose from {', '.join(WEEKDAYS)}. Nothing was saved."
            )
    found: dict[date, str] = {}
    if country is not None:
        found |= _of_country(name, country, subdivision, from_us(now).year)
    elif subdivision is not None:
        raise InvalidError("subdivision= needs a country=; nothing was saved.")
    given = holidays.items() if isinstance(holidays, Mapping) else ((day, "holiday") for day in holidays)
    for day, said in given:
        if not isinstance(day, date) or isinstance(day, datetime):
            raise InvalidError(
                f"holidays: {day!r:.60} is not a date; give dates, such as date(2027, 5, 1). Nothing was saved."
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
