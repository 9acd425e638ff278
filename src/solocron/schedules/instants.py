"""Query any schedule in whole microseconds: built-ins natively, a user's class by conversion, its results checked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from solocron.clock import from_us, iso, to_us
from solocron.errors import ScheduleError
from solocron.schedules.contract import Schedule
from solocron.schedules.native import Native

__all__ = ["after", "before", "between", "count", "instant_of", "nominal", "zone"]


def after(schedule: Schedule, us: int) -> int | None:
    """Return the first slot strictly after `us`.

    A result that is not after `us` would fire forever, so it is refused.
    """
    if isinstance(schedule, Native):
        return schedule.after_us(us)
    found = _instant(schedule, "after", schedule.after(from_us(us)))
    if found is not None and found <= us:
        raise _broken(schedule, f"after({iso(us)}) returned {iso(found)}, which is not after it")
    return found


def before(schedule: Schedule, us: int) -> int | None:
    """Return the last slot strictly before `us`."""
    if isinstance(schedule, Native):
        return schedule.before_us(us)
    found = _instant(schedule, "before", schedule.before(from_us(us)))
    if found is not None and found >= us:
        raise _broken(schedule, f"before({iso(us)}) returned {iso(found)}, which is not before it")
    return found


def between(schedule: Schedule, a: int, b: int) -> Iterator[int]:
    """Yield the slots after `a` and not after `b`, in order; each is checked to be later than the one before it."""
    at = after(schedule, a)
    while at is not None and at <= b:
        yield at
        at = after(schedule, at)


def count(schedule: Schedule, a: int, b: int) -> int:
    """Return the number of slots after `a` and not after `b`."""
    if isinstance(schedule, Native):
        return schedule.count_us(a, b)
    if b <= a:
        return 0
    found: object = schedule.count(from_us(a), from_us(b))
    if not isinstance(found, int) or found < 0:
        raise _broken(schedule, f"count() returned {found!r:.80}, which is not a number of slots")
    return found


def nominal(schedule: Schedule, us: int) -> str | None:
    """Return the local reading of a slot, 'YYYY-MM-DDTHH:MM:SS' and '#1' the second time round; None without a zone."""
    return schedule.nominal(us) if isinstance(schedule, Native) else None


def instant_of(schedule: Schedule, nominal: str) -> int | None:
    """Return the instant up to which everything is decided once `nominal` is; None without local readings."""
    return schedule.instant_of(nominal) if isinstance(schedule, Native) else None


def zone(schedule: Schedule) -> str:
    """Return the IANA zone in which people read its slots; a user's own class may have such an attribute."""
    name = getattr(schedule, "zone", "UTC")
    return name if isinstance(name, str) else "UTC"


def _instant(schedule: Schedule, verb: str, moment: object) -> int | None:
    if moment is None:
        return None
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise _broken(schedule, f"{verb}() returned {moment!r:.80}, which is not an aware datetime")
    return to_us(moment)


def _broken(schedule: Schedule, what: str) -> ScheduleError:
    return ScheduleError(f"{type(schedule).__name__}.{what}; correct the class, nothing was scheduled from it.")
