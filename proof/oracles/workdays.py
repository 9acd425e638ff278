"""The slots of a schedule under one revision of a calendar, worked out the slow way: day by day, each slot by itself.

Knows weekends, holidays and two lines of European law, and nothing of the code that it is held against.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any, Protocol

from solocron.model.documents.run import Record

__all__ = ["Slots", "Workdays", "instant_of", "is_left_out", "local_of"]

_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Slots(Protocol):
    """Slots that can be counted by hand."""

    def count(self, after: int, until: int) -> int:
        """Return how many lie after `after` and not after `until`."""

    def between(self, after: int, until: int) -> list[int]:
        """Those."""


def is_left_out(record: Record) -> bool:
    """Whether a record tells of slots on days off."""
    return (record.reason or "").startswith("calendar ")


@cache
def _changes(year: int) -> tuple[datetime, datetime]:
    """01:00 UTC on the last Sundays of March and October."""

    def last_sunday(month: int) -> datetime:
        last = date(year, month, 31)
        return datetime(year, month, 31 - (last.weekday() + 1) % 7, 1, tzinfo=UTC)

    return last_sunday(3), last_sunday(10)


def local_of(us: int, *, europe: bool) -> datetime:
    """Return what clocks show at an instant, in central Europe or in UTC."""
    at = _EPOCH + timedelta(microseconds=us)
    if not europe:
        return at
    spring, autumn = _changes(at.year)
    return at + timedelta(hours=2 if spring <= at < autumn else 1)


def instant_of(reading: datetime, *, europe: bool) -> int:
    """Return when clocks show that: the first time if they do so twice, the end of the gap if they never do."""
    chosen = reading
    if europe:
        spring, autumn = _changes(reading.year)
        summer, winter = reading - timedelta(hours=2), reading - timedelta(hours=1)
        if spring <= summer < autumn:
            chosen = summer
        elif not spring <= winter < autumn:
            chosen = winter
        else:
            chosen = spring
    return (chosen - _EPOCH) // timedelta(microseconds=1)


class Workdays:
    """Slots that fall on a day off are left out (skip), or come at the same time of the next or previous workday.

    One that comes when there is one anyway is that one.
    """

    def __init__(self, slots: Slots, body: Mapping[str, Any], rule: str, *, europe: bool) -> None:
        self._slots = slots
        self._weekend = frozenset(body["weekend"])
        self._holidays = frozenset(day for day, _ in body["holidays"])
        self._rule = rule
        self._europe = europe
        self._known: dict[date, list[int]] = {}

    def count(self, after: int, until: int) -> int:
        if self._rule != "skip":
            return len(self.between(after, until))
        return sum(self._slots.count(low, high) for low, high in self._waiting_ranges(after, until, worked=True))

    def between(self, after: int, until: int) -> list[int]:
        if self._rule == "skip":
            parts = self._waiting_ranges(after, until, worked=True)
            return [slot for low, high in parts for slot in self._slots.between(low, high)]
        found = [slot for day in self._days(after, until) for slot in self._on(day)]
        return found[bisect_right(found, after) : bisect_right(found, until)]

    def left_out(self, after: int, until: int) -> list[int]:
        """Those that are on days off, and come at no other time instead."""
        if self._rule != "skip":
            return []
        parts = self._waiting_ranges(after, until, worked=False)
        return [slot for low, high in parts for slot in self._slots.between(low, high)]

    def is_moved(self, slot: int) -> bool:
        """Whether there would be none without the calendar."""
        return not self._slots.count(slot - 1, slot)

    # --- days ----------------------------------------------------------------------------------------------------

    def _works(self, day: date) -> bool:
        return day.weekday() not in self._weekend and day.isoformat() not in self._holidays

    def _days(self, after: int, until: int) -> Iterator[date]:
        if until <= after:
            return
        day, last = (local_of(us, europe=self._europe).date() for us in (after, until))
        while day <= last:
            yield day
            day += _DAY

    def _bounds(self, day: date) -> tuple[int, int]:
        """The instants after which, and up to which, it is that day."""
        midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
        return instant_of(midnight, europe=self._europe) - 1, instant_of(midnight + _DAY, europe=self._europe) - 1

    def _waiting_ranges(self, after: int, until: int, *, worked: bool) -> Iterator[tuple[int, int]]:
        """Count the slots between, day by day, of the days that are worked or of the others."""
        for day in self._days(after, until):
            if self._works(day) is worked:
                low, high = self._bounds(day)
                if (low := max(low, after)) < (high := min(high, until)):
                    yield low, high

    def _on(self, day: date) -> list[int]:
        """The slots of a day, those that come from days off beside it among them."""
        if day not in self._known:
            found: set[int] = set()
            if self._works(day):
                found.update(self._slots.between(*self._bounds(day)))
                step = -_DAY if self._rule == "next" else _DAY
                off = day + step
                while not self._works(off):
                    found.update(self._at(slot, day) for slot in self._slots.between(*self._bounds(off)))
                    off += step
            self._known[day] = sorted(found)
        return self._known[day]

    def _at(self, slot: int, day: date) -> int:
        """The same time of another day."""
        reading = local_of(slot, europe=self._europe)
        return instant_of(reading.replace(year=day.year, month=day.month, day=day.day), europe=self._europe)
