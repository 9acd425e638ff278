"""Business calendars: the workdays, and a schedule whose slots on other days are left out or moved.

Days are those of the schedule's own zone. A calendar's content never changes: new content is a new revision, so that
two nodes that name the same revision agree on every slot. A moved slot that falls onto another is that slot: there are
never two at one instant.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

from solocron.clock import from_us, to_us
from solocron.errors import InvalidError, ScheduleError
from solocron.schedules import instants
from solocron.schedules.contract import Schedule
from solocron.schedules.native import MICRO, Native
from solocron.schedules.zone import load_zone

__all__ = ["RULES", "WEEKDAYS", "Calendar", "Calendared", "MovedSlot", "check_movable"]

RULES = ("skip", "next", "previous")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
LONGEST = 60
"""Days off in a row; more than that is a mistake, and slots would move into another season."""
OFTEN = 48
"""Slots a day, on average, of a schedule that can be moved: beyond that every moment of the day is taken."""
_DAY = timedelta(days=1)
_PATIENCE = 600
"""Runs of days off to look across: a schedule without a slot on a workday for ten years has none."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """One revision of a calendar: the days of the week that are off, and single days with their names."""

    name: str
    revision: int
    weekend: frozenset[int]
    holidays: Mapping[date, str]
    days: tuple[date, ...]

    @classmethod
    def make(cls, name: str, revision: int, weekend: frozenset[int], holidays: Mapping[date, str]) -> Calendar:
        if len(weekend) == 7:
            raise InvalidError(
                f"calendar {name}: every day of the week is off, so nothing would ever run. Nothing was saved."
            )
        made = cls(name, revision, weekend, dict(holidays), tuple(sorted(holidays)))
        for day in made.days:
            run = made.off(day)
            if (run[1] - run[0]).days >= LONGEST:
                raise InvalidError(
                    f"calendar {name}: {run[0]} to {run[1]} are off, more than {LONGEST} days in a row. Nothing was "
                    "saved; pause the jobs instead."
                )
        return made

    @classmethod
    def from_json(cls, name: str, body: Mapping[str, Any]) -> Calendar:
        return cls.make(
            name,
            body["revision"],
            frozenset(body["weekend"]),
            {date.fromisoformat(day): said for day, said in body["holidays"]},
        )

    def content(self) -> dict[str, Any]:
        """Fields that two equal revisions share."""
        return {"weekend": sorted(self.weekend), "holidays": [[f"{day}", self.holidays[day]] for day in self.days]}

    def to_json(self) -> dict[str, Any]:
        return {"revision": self.revision, **self.content()}

    def works(self, day: date) -> bool:
        return day.weekday() not in self.weekend and day not in self.holidays

    def why(self, day: date) -> str:
        """Reason why a day is off."""
        return self.holidays.get(day) or f"{day:%A}"

    def off(self, day: date) -> tuple[date, date]:
        """Return the first and the last of the days off around one of them."""
        first = last = day
        while not self.works(first - _DAY):
            first -= _DAY
        while not self.works(last + _DAY):
            last += _DAY
        return first, last

    def next_off(self, day: date) -> date | None:
        """Return the first day off from `day` on."""
        at = bisect_left(self.days, day)
        found = self.days[at] if at < len(self.days) else None
        for ahead in range(7 if self.weekend else 0):
            if (day + ahead * _DAY).weekday() in self.weekend:
                weekend = day + ahead * _DAY
                return weekend if found is None else min(found, weekend)
        return found

    def last_off(self, day: date) -> date | None:
        """Return the last day off up to `day`."""
        at = bisect_right(self.days, day)
        found = self.days[at - 1] if at else None
        for back in range(7 if self.weekend else 0):
            if (day - back * _DAY).weekday() in self.weekend:
                weekend = day - back * _DAY
                return weekend if found is None else max(found, weekend)
        return found

    def __hash__(self) -> int:
        return hash((self.name, self.revision))


@dataclass(frozen=True, slots=True)
class MovedSlot:
    """A slot that the calendar touches: its original instant, its new one (None: left out), and the reason."""

    was: int
    at: int | None
    why: str


class Calendared(Native):
    """Another schedule under a calendar: its slots on days off are left out, or moved to the next or previous workday.

    A moved slot keeps its local time; one that the clocks skip there comes at the end of the gap.
    """

    __slots__ = ("calendar", "rule", "schedule", "zone")

    schedule: Schedule
    calendar: Calendar
    rule: str

    def __init__(self, schedule: Schedule, calendar: Calendar, rule: str = "skip") -> None:
        if rule not in RULES:
            raise ScheduleError(f'on_holiday={rule!r:.40} is not known; choose "skip", "next" or "previous".')
        if rule != "skip":
            check_movable(schedule)
        put = object.__setattr__
        put(self, "schedule", schedule)
        put(self, "calendar", calendar)
        put(self, "rule", rule)
        put(self, "zone", instants.zone(schedule))

    # --- days ----------------------------------------------------------------------------------------------------

    def _day(self, us: int) -> date:
        return from_us(us).astimezone(load_zone(self.zone).info).date()

    def _start(self, day: date) -> int:
        """Return the first instant of a local day."""
        return _instant(self.zone, datetime(day.year, day.month, day.day, tzinfo=UTC))

    # --- slots on workdays ---------------------------------------------------------------------------------------

    def _regular_after(self, us: int) -> int | None:
        for _ in range(_PATIENCE):
            if (found := instants.after(self.schedule, us)) is None:
                return None
            day = self._day(found)
            if self.calendar.works(day):
                return found
            us = self._start(self.calendar.off(day)[1] + _DAY) - 1
        return None

    def _regular_before(self, us: int) -> int | None:
        for _ in range(_PATIENCE):
            if (found := instants.before(self.schedule, us)) is None:
                return None
            day = self._day(found)
            if self.calendar.works(day):
                return found
            us = self._start(self.calendar.off(day)[0])
        return None

    def _off_between(self, a: int, b: int) -> Iterator[tuple[date, date]]:
        """Yield the runs of days off that touch (a, b], in order."""
        day: date | None = self.calendar.next_off(self._day(a + 1))
        end = self._day(b)
        while day is not None and day <= end:
            run = self.calendar.off(day)
            yield run
            day = self.calendar.next_off(run[1] + _DAY)

    def _left_out(self, a: int, b: int) -> int:
        """Number of slots in (a, b] on days off."""
        total = 0
        for first, last in self._off_between(a, b):
            low, high = max(a, self._start(first) - 1), min(b, self._start(last + _DAY) - 1)
            total += instants.count(self.schedule, low, high) if low < high else 0
        return total

    # --- slots that were moved -----------------------------------------------------------------------------------

    def _target(self, run: tuple[date, date]) -> date:
        return run[1] + _DAY if self.rule == "next" else run[0] - _DAY

    def _moved(self, run: tuple[date, date]) -> tuple[int, ...]:
        """Targets of the slots of a run of days off, without instants that are slots already."""
        return _moved(self, run)

    def _run_near(self, us: int, *, ahead: bool) -> tuple[date, date] | None:
        """Return the first run (ahead), or the last, whose target may lie on the day of `us`, or beyond it."""
        day = self._day(us)
        if ahead:
            # "next": also the days off just before this one; "previous": only those that begin after it.
            near = self.calendar.next_off(day - _DAY if self.rule == "next" else day + _DAY)
        else:
            near = self.calendar.last_off(day - _DAY if self.rule == "next" else day + _DAY)
        return None if near is None else self.calendar.off(near)

    def after_us(self, us: int) -> int | None:
        best = self._regular_after(us)
        if self.rule == "skip":
            return best
        run = self._run_near(us, ahead=True)
        while run is not None:
            if best is not None and self._start(self._target(run)) > best:
                break
            found = next((at for at in self._moved(run) if at > us), None)
            if found is not None:
                return found if best is None else min(best, found)
            # Straight to the run of the next slot that is off, or past the workdays before it.
            slot = instants.after(self.schedule, self._start(run[1] + _DAY) - 1)
            if slot is None:
                break
            following = self.calendar.next_off(max(self._day(slot), run[1] + _DAY))
            run = None if following is None else self.calendar.off(following)
        return best

    def before_us(self, us: int) -> int | None:
        best = self._regular_before(us)
        if self.rule == "skip":
            return best
        run = self._run_near(us, ahead=False)
        while run is not None:
            if best is not None and self._start(self._target(run) + _DAY) - 1 < best:
                break
            found = next((at for at in reversed(self._moved(run)) if at < us), None)
            if found is not None:
                return found if best is None else max(best, found)
            slot = instants.before(self.schedule, self._start(run[0]))
            if slot is None:
                break
            earlier = self.calendar.last_off(min(self._day(slot), run[0] - _DAY))
            run = None if earlier is None else self.calendar.off(earlier)
        return best

    def count_us(self, a: int, b: int) -> int:
        if b <= a:
            return 0
        found = instants.count(self.schedule, a, b) - self._left_out(a, b)
        if self.rule == "skip":
            return found
        for run in self._runs_aiming(a, b):
            moved = self._moved(run)
            found += bisect_right(moved, b) - bisect_right(moved, a)
        return found

    def _runs_aiming(self, a: int, b: int) -> Iterator[tuple[date, date]]:
        """Yield the runs whose target may lie in (a, b], even if they themselves do not.

        Runs without a slot are left out.
        """
        first, last = self._day(a) - _DAY, self._day(b) + _DAY
        near = self.calendar.next_off(first)
        while near is not None and near <= last:
            run = self.calendar.off(near)
            if instants.count(self.schedule, self._start(run[0]) - 1, self._start(run[1] + _DAY) - 1):
                yield run
            near = self.calendar.next_off(run[1] + _DAY)

    # --- for people ----------------------------------------------------------------------------------------------

    def left_out(self, a: int, b: int) -> tuple[int, int, int, str] | None:
        """Return number, first and last of the slots left out in (a, b], and why the last is; None if none are."""
        count = self._left_out(a, b) if self.rule == "skip" and b > a else 0
        if not count:
            return None
        found = [
            slot
            for first, last in self._off_between(a, b)
            for slot in (
                instants.after(self.schedule, max(a, self._start(first) - 1)),
                instants.before(self.schedule, min(b + 1, self._start(last + _DAY))),
            )
            if slot is not None and a < slot <= b and not self.calendar.works(self._day(slot))
        ]
        return count, min(found), max(found), self.calendar.why(self._day(max(found)))

    def touched(self, a: int, b: int, limit: int) -> list[MovedSlot]:
        """Return the slots in (a, b] that the calendar leaves out or moves, at most `limit` of them."""
        found: list[MovedSlot] = []
        for first, last in self._off_between(a, b):
            at = max(a, self._start(first) - 1)
            end = min(b, self._start(last + _DAY) - 1)
            while len(found) < limit and (slot := instants.after(self.schedule, at)) is not None and slot <= end:
                day = self._day(slot)
                to = None if self.rule == "skip" else self._move(slot, self._target((first, last)))
                found.append(MovedSlot(slot, to, self.calendar.why(day)))
                at = slot
        return found

    def _move(self, slot: int, to: date) -> int:
        """Return the same local time on another day."""
        there = from_us(slot).astimezone(load_zone(self.zone).info)
        reading = datetime(to.year, to.month, to.day, there.hour, there.minute, there.second, tzinfo=UTC)
        return _instant(self.zone, reading) + there.microsecond

    def nominal(self, us: int) -> str | None:
        return instants.nominal(self.schedule, us)

    def instant_of(self, nominal: str) -> int | None:
        return instants.instant_of(self.schedule, nominal)

    def describe(self) -> str:
        how = {"skip": "left out", "next": "moved to the next workday", "previous": "moved to the workday before"}
        return f"{self.schedule.describe()}; days off of {self.calendar.name} are {how[self.rule]}"

    def _identity(self) -> tuple[object, ...]:
        return self.schedule, self.calendar, self.rule

    def __reduce__(self) -> tuple[object, ...]:
        return Calendared, (self.schedule, self.calendar, self.rule)

    def __repr__(self) -> str:
        return f"Calendared({self.schedule!r}, {self.calendar.name!r} revision {self.calendar.revision}, {self.rule!r})"


@lru_cache(maxsize=4096)
def _moved(schedule: Calendared, run: tuple[date, date]) -> tuple[int, ...]:
    base, target = schedule.schedule, schedule._target(run)
    low, high = schedule._start(run[0]) - 1, schedule._start(run[1] + _DAY) - 1
    found = {schedule._move(slot, target) for slot in instants.between(base, low, high)}
    return tuple(sorted(at for at in found if instants.after(base, at - 1) != at))


def _instant(zone: str, reading: datetime) -> int:
    """Return the instant of a local reading, given as if it were UTC.

    Of two instants it is the first; in a gap it is the end of the gap.
    """
    seconds = to_us(reading) // MICRO
    if zone == "UTC":
        return seconds * MICRO
    here = load_zone(zone)
    found = here.instants(seconds)
    return (found[0] if found else here.gap_end(seconds)) * MICRO


def check_movable(schedule: Schedule) -> None:
    """Refuse to move a schedule that runs so often that its slots would fall onto each other."""
    start = to_us(datetime(2026, 1, 1, tzinfo=UTC))
    year = 366 * 86_400 * MICRO
    if instants.count(schedule, start, start + year) > OFTEN * 366:
        raise ScheduleError(
            f'on_holiday="next" and "previous" are for schedules of at most {OFTEN} slots a day; what runs more often '
            'would fall onto itself. Choose on_holiday="skip".'
        )
