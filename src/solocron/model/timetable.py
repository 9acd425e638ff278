"""A job's schedule as the state machine uses it: whole microseconds in, whole microseconds out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from solocron.schedules import Bounded, Calendared, Schedule, Spread, instants

__all__ = ["EMPTY", "Resolve", "Timetable"]


@dataclass(frozen=True, slots=True)
class Timetable:
    """The slots of one job; none without a schedule. `known` is False if only a node with the code can compute them."""

    schedule: Schedule | None
    known: bool = True

    def after(self, us: int) -> int | None:
        """Return the first slot strictly after."""
        return None if self.schedule is None else instants.after(self.schedule, us)

    def before(self, us: int) -> int | None:
        """Return the last slot strictly before."""
        return None if self.schedule is None else instants.before(self.schedule, us)

    def count(self, a: int, b: int) -> int:
        """Return the number of slots after `a` and not after `b`."""
        return 0 if self.schedule is None or b <= a else instants.count(self.schedule, a, b)

    def nominal(self, us: int) -> str | None:
        """Return the local reading of a slot, for schedules with a zone."""
        return None if self.schedule is None else instants.nominal(self.schedule, us)

    def decided_until(self, cursor: int, nominal: str | None) -> int:
        """Return the cursor as this machine's zone data reads it.

        Nodes may know different rules for a zone: one has decided "09:00 on the 16th" at an instant that another takes
        for 08:00. The local reading is what was decided, so the other looks for slots after *its* 09:00.
        """
        if nominal is None or self.schedule is None or self.nominal(cursor) == nominal:
            return cursor
        instant = instants.instant_of(self.schedule, nominal)
        return cursor if instant is None else instant

    def left_out(self, a: int, b: int) -> tuple[int, int, int, str] | None:
        """Return the slots that a calendar left out between: number, first, last, reason; None if there are none."""
        schedule, shift = self.schedule, 0
        if isinstance(schedule, Bounded):
            a, b, schedule = max(a, schedule.starts_us - 1), min(b, schedule.ends_us), schedule.schedule
        if isinstance(schedule, Spread):
            shift = schedule.offset_us
            schedule = schedule.schedule
        if not isinstance(schedule, Calendared) or b <= a:
            return None
        found = schedule.left_out(a - shift, b - shift)
        if found is None:
            return None
        count, first, last, why = found
        calendar = schedule.calendar
        return count, first + shift, last + shift, f"calendar {calendar.name}, revision {calendar.revision}: {why}"

    def newest(self, a: int, b: int, limit: int) -> int:
        """Return the instant closest to `a` after which at most `limit` slots lie, up to `b`."""
        if self.count(a, b) <= limit:
            return a
        low, high = a, b  # count(low) > limit >= count(high)
        while high - low > 1:
            middle = (low + high) // 2
            if self.count(middle, b) > limit:
                low = middle
            else:
                high = middle
        return high


EMPTY = Timetable(None)

Resolve = Callable[[Mapping[str, Any] | None], Timetable]
"""Returns the timetable of a schedule in its stored form."""
