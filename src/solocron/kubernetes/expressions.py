"""The `schedule` of a CronJob: five fields of a cron expression, as the controller of Kubernetes reads them."""

from __future__ import annotations

import re

from solocron.clock import SECOND
from solocron.errors import InvalidError
from solocron.schedules import Bounded, Calendared, Cron, Every, Schedule

__all__ = ["fields_of"]

_READ = re.compile(r"[0-9A-Z*,/-]+")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MINUTE, _HOUR, _DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND


def fields_of(name: str, schedule: Schedule, on_holiday: str | None = None) -> tuple[str, str]:
    """Return the five fields and the zone; refuse what a CronJob cannot say.

    Bounds and days that a calendar leaves out are left to the store: a Pod at such a time finds nothing to do. A slot
    that a calendar moves would have no Pod on the day that it is moved to.
    """
    if on_holiday not in (None, "skip"):
        raise _refusal(name, f"on_holiday={on_holiday!r} moves slots to days that the expression does not name")
    inner = schedule
    while isinstance(inner, Bounded | Calendared):
        inner = inner.schedule
    if isinstance(inner, Cron):
        return _of_cron(name, inner), str(inner.zone)
    if isinstance(inner, Every):
        return _of_period(name, inner), "UTC"
    raise _refusal(name, f"{schedule.describe()} is not a cron expression")


def _of_cron(name: str, cron: Cron) -> str:
    second, *fields = cron.fields
    if second != "0":
        raise _refusal(name, f"{cron.expression!r} has seconds")
    for field in fields:
        if not _READ.fullmatch(field) or re.search(r"(?<![A-Z])(L|W|LW)(?![A-Z])|[0-9][LW]", field):
            raise _refusal(name, f"{field!r} in {cron.expression!r} means nothing to a CronJob")
    fields[4] = ",".join(day for part in fields[4].split(",") for day in _days(part))
    return " ".join(fields)


def _days(part: str) -> list[str]:
    """Return days of the week with Sunday as 0: the controller knows no 7, and its steps end with Saturday."""
    whole, _, step = part.partition("/")
    first, dash, last = whole.partition("-")
    if whole == "*" or not (step or "7" in whole):
        return [part]
    if not step:
        return ["0"] if first == "7" else [f"{first}-6" if first != "6" else "6", "0"]
    low = _WEEKDAYS.index(first) if first in _WEEKDAYS else int(first)
    high = 7 if not dash else _WEEKDAYS.index(last) if last in _WEEKDAYS else int(last)
    found = range(low, high + 1, int(step))
    return [str(day % 7) for day in found] if 7 in found or last == "7" else [part]


def _of_period(name: str, every: Every) -> str:
    period = every.period_us
    if period % _MINUTE == 0 and _HOUR % period == 0:
        return (
            "0 * * * *" if period == _HOUR else "* * * * *" if period == _MINUTE else f"*/{period // _MINUTE} * * * *"
        )
    if period % _HOUR == 0 and _DAY % period == 0:
        return "0 0 * * *" if period == _DAY else f"0 */{period // _HOUR} * * *"
    raise _refusal(name, f"{every.describe()} does not divide an hour or a day")


def _refusal(name: str, why: str) -> InvalidError:
    return InvalidError(f"{name}: {why}. Nothing was printed; use --mode tick, where the store decides what is due.")
