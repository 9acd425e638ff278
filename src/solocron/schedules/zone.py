"""Time zones from the `tzdata` package alone, so that two machines with the same package agree on every instant.

The system's zone files are never read: they are of another age on every machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, timedelta, tzinfo
from functools import lru_cache
from io import BytesIO
from typing import NamedTuple

import tzdata  # type: ignore[import-untyped]  # it is data, and one constant

from solocron.clock import EPOCH
from solocron.errors import ScheduleError
from solocron.near import nearest

__all__ = ["MARGIN", "ClockChange", "Zone", "load_zone", "zone_data_version", "zone_name", "zone_names"]

_PROBE = 172_800

MARGIN = 172_800
"""More seconds than any reading is away from its instant, clock change included: never above 40 hours."""


def zone_name(tz: str | tzinfo) -> str:
    """Return the IANA name of a zone that is given by its name or as an object."""
    if isinstance(tz, str):
        return tz
    if tz is UTC:
        return "UTC"
    key = getattr(tz, "key", None)  # of a ZoneInfo; None for one that was read from a file
    if isinstance(tz, tzinfo) and isinstance(key, str):
        return key
    raise ScheduleError(f"tz={tz!r:.80} names no zone; give an IANA name such as 'Europe/Paris', or a ZoneInfo.")


class ClockChange(NamedTuple):
    """A zone's clocks are set at `at`: from `before` to `after` seconds ahead of UTC."""

    at: int
    before: int
    after: int


class Zone:
    """One zone: its offsets from UTC, and when they change. Compared by name, never by its rules."""

    __slots__ = ("info", "name")

    def __init__(self, name: str, info: tzinfo) -> None:
        self.name = name
        self.info = info

    def offset(self, at: int) -> int:
        """Return the seconds ahead of UTC at an instant."""
        ahead = (EPOCH + timedelta(seconds=at)).astimezone(self.info).utcoffset()
        assert ahead is not None
        return ahead.days * 86_400 + ahead.seconds

    def changes(self, a: int, b: int) -> Iterator[ClockChange]:
        """Yield the changes after `a` and not after `b`, in order.

        zoneinfo keeps its transitions private, so they are found by probing every two days and bisecting. No zone has
        changed twice within a week since 1970; a test checks that for the installed data.
        """
        at, before = a, self.offset(a)
        while at < b:
            probe = min(at + _PROBE, b)
            while self.offset(probe) != before:
                low, high = at, probe
                while high - low > 1:
                    middle = (low + high) // 2
                    if self.offset(middle) == before:
                        low = middle
                    else:
                        high = middle
                after = self.offset(high)
                yield ClockChange(high, before, after)
                at, before = high, after
            at = probe

    def instants(self, reading: int) -> list[int]:
        """Return the instants at which the clocks show `reading`: one, two in a fold, none in a gap."""
        ahead = {self.offset(reading - MARGIN), self.offset(reading + MARGIN)}
        return sorted(reading - offset for offset in ahead if self.offset(reading - offset) == offset)

    def gap_end(self, reading: int) -> int:
        """Return the instant at which the clocks jump over `reading`, which no clock ever shows."""
        return next(
            at
            for at, before, after in self.changes(reading - MARGIN, reading + MARGIN)
            if before <= reading - at < after
        )


@lru_cache(maxsize=1024)
def load_zone(name: str) -> Zone:
    """Return the zone of this IANA name; an unknown one is refused with the nearest that exist."""
    if name not in zone_names():
        raise ScheduleError(f"unknown time zone {name!r:.80}; {_suggestion(name)}")
    from zoneinfo import ZoneInfo  # 4 ms that a program in UTC never pays

    return Zone(name, ZoneInfo.from_file(_open(f"zoneinfo/{name}"), key=name))


def zone_names() -> frozenset[str]:
    """Return every name in the zone data; read anew each time, because it is needed once for each zone."""
    return frozenset(_open("zones").read().decode().split())


def zone_data_version() -> str:
    """Return the release of the zone data in use, such as "2026f"."""
    return str(tzdata.IANA_VERSION)


def _open(path: str) -> BytesIO:
    """Open a file of the tzdata package, through its loader, so that it is also found inside a zip."""
    folder = os.path.dirname(tzdata.__file__)
    return BytesIO(tzdata.__loader__.get_data(os.path.join(folder, *path.split("/"))))


def _suggestion(name: str) -> str:
    by_lower = {known.lower(): known for known in zone_names()}
    close = nearest(name[:40].lower(), by_lower, n=2)
    if not close:
        return "give an IANA name such as 'Europe/Paris' or 'UTC'."
    return "did you mean " + " or ".join(repr(by_lower[match]) for match in close) + "?"
