"""Readings of a wall clock that match an expression, counted in seconds as if the wall hung in UTC."""

from __future__ import annotations

from solocron.schedules.days import Days
from solocron.schedules.time_of_day import DAY, Dial

__all__ = ["Wall"]


class Wall:
    """Matching days x matching times of day: an ordered set of readings, with no zone and so no surprises."""

    __slots__ = ("_days", "_dial")

    def __init__(self, days: Days, dial: Dial) -> None:
        self._days = days
        self._dial = dial

    def ceil(self, at: int) -> int:
        """Return the first matching reading not before `at`."""
        today, time = divmod(at, DAY)
        days, dial = self._days, self._dial
        day = today if days.every else days.ceil(today)
        if day == today:
            if (found := dial.ceil(time)) < DAY:
                return day * DAY + found
            day = day + 1 if days.every else days.ceil(day + 1)
        return day * DAY + dial.first

    def floor(self, at: int) -> int:
        """Return the last matching reading not after `at`."""
        today, time = divmod(at, DAY)
        days, dial = self._days, self._dial
        day = today if days.every else days.floor(today)
        if day == today:
            if (found := dial.floor(time)) >= 0:
                return day * DAY + found
            day = day - 1 if days.every else days.floor(day - 1)
        return day * DAY + dial.last

    def has(self, at: int) -> bool:
        """True if this reading matches."""
        return self.ceil(at) == at

    def count(self, a: int, b: int) -> int:
        """Return the number of matching readings from `a` on, before `b`."""
        first, from_time = divmod(a, DAY)
        last, to_time = divmod(b, DAY)
        days, dial = self._days, self._dial
        found = (last - first if days.every else days.count(first, last)) * dial.per_day
        if days.every or days.ceil(first) == first:
            found -= dial.rank(from_time)
        if days.every or days.ceil(last) == last:
            found += dial.rank(to_time)
        return found
