"""The `schedule` of a CronJob: five fields of a cron expression, as the controller of Kubernetes reads them."""

from __future__ import annotations

import re

from solocron.clock import SECOND
from solocron.errors import InvalidError
from solocron.schedules import Bounded, Calendared, Cron, Every, Schedule

__all__ = ["fields_of"]

_READ = re.compile(r"[0-9A-Z*,/-]+")
_MINUTE, _HOUR, _DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND


def fields_of(name: str, schedule: Schedule) -> tuple[str, str]:
    """Return the five fields and the zone; refuse what a CronJob cannot say.

    Bounds and calendars are left to the store: a Pod at such a time finds nothing to do.
    """
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
    fields[4] = _sunday(name, fields[4])
    return " ".join(fields)


def _sunday(name: str, field: str) -> str:
    """Return the days of the week with Sunday as 0: the controller knows no 7."""
    parts = []
    for part in field.split(","):
        whole, _, step = part.partition("/")
        if "7" not in whole:
            parts.append(part)
        elif whole == "7":
            parts.append("0")
        elif whole.endswith("-7") and not step:
            parts += [f"{whole[:-2]}-6" if whole[:-2] != "6" else "6", "0"]
        else:
            raise _refusal(name, f"the days {field!r} end on a 7")
    return ",".join(parts)


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
