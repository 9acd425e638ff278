"""Turn six plain fields into the readings that they match; refuse at declaration what can never fire."""

from __future__ import annotations

from cronsim import CronSim, CronSimError

from solocron.errors import ScheduleError
from solocron.schedules.days import days
from solocron.schedules.field import ANY_TIME, FIELDS
from solocron.schedules.readings import Wall
from solocron.schedules.time_of_day import Dial

__all__ = ["is_wildcard", "parse"]


def is_wildcard(fields: tuple[str, ...]) -> bool:
    """Return whether a minute or hour field begins with `*`: as in Debian's cron, such a job follows the wall clock.

    All others name fixed times, which are neither lost in a gap nor repeated in a fold. Seconds do not matter here.
    """
    return fields[1].startswith("*") or fields[2].startswith("*")


def parse(fields: tuple[str, ...]) -> Wall:
    """Return the readings that match; cronsim reads the fields, five at a time, and never iterates."""
    second, minute, hour, *date = fields
    if "/" in date[0] and "L" in date[0]:  # cronsim would silently ignore the step
        raise ScheduleError(_reason(fields))
    try:
        seconds = CronSim(f"{second} * * * *", ANY_TIME).minutes
        times = CronSim(f"{minute} {hour} {' '.join(date)}", ANY_TIME)
    except CronSimError:
        raise ScheduleError(_reason(fields)) from None
    matching = days(" ".join(date))
    if not matching.exist():
        raise ScheduleError(_reason(fields))
    return Wall(matching, Dial(frozenset(times.hours), frozenset(times.minutes), frozenset(seconds)))


def _reason(fields: tuple[str, ...]) -> str:
    for field, text in zip(FIELDS, fields, strict=True):
        if reason := field.why_not(text):
            return reason
    day, month, weekday = fields[3:]
    return (
        f"the day of month field {day!r}, the month field {month!r} and the day of week field {weekday!r} "
        "never meet on any date; choose a day that exists."
    )
