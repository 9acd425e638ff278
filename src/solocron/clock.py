"""Tells the time of this machine: boot time for trust, wall time only for waking up and for people.

Store time decides (see `solocron.stores.contract`); nothing here ever does. Boot time continues while a laptop sleeps,
which `time.monotonic()` does not, so a lease cannot look younger than it is.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Protocol

__all__ = ["EPOCH", "MILLISECOND", "SECOND", "Clock", "SystemClock", "from_us", "iso", "to_us"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
MILLISECOND = 1_000


class Clock(Protocol):
    """The time as a node knows it without a call to the store."""

    def boot(self) -> float:
        """Return the seconds since boot, suspend included; never steps."""
        ...

    def wall(self) -> int:
        """Return microseconds since 1970 by this machine's wall clock; may step, decides nothing."""
        ...


if hasattr(time, "CLOCK_BOOTTIME"):
    _boot = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
else:  # pragma: no cover - macOS and Windows; their monotonic clock is the best there is
    _boot = partial(time.monotonic)


class SystemClock:
    """The machine's own clocks."""

    boot = staticmethod(_boot)

    def wall(self) -> int:
        return time.time_ns() // 1000


def to_us(moment: datetime) -> int:
    """Return the exact microseconds since 1970 of an aware datetime."""
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * SECOND + since.microseconds


def from_us(us: int) -> datetime:
    """Return the aware UTC datetime of an instant."""
    return EPOCH + timedelta(microseconds=us)


@lru_cache(maxsize=256)  # jobs that fall due together share their slot
def iso(us: int) -> str:
    """Return an instant as people and JSON see it: ISO-8601, UTC, whole seconds unless it has a fraction."""
    text = from_us(us).isoformat(timespec="microseconds" if us % SECOND else "seconds")
    return text.replace("+00:00", "Z")
