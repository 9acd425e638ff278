"""The first and the last day of a schedule, or the first and the last instant: outside of them it has no slot.

A date is a whole day in the schedule's zone, from its first moment to its last, also where a clock change moves those.
It is kept as a date: a change of the zone's rules moves the bound along with the slots.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from solocron.clock import from_us, iso, to_us
from solocron.errors import ScheduleError
from solocron.schedules import instants
from solocron.schedules.contract import Schedule
from solocron.schedules.native import FIRST, LAST, MICRO, Native
from solocron.schedules.spread import Spread
from solocron.schedules.zone import load_zone

__all__ = ["Bound", "Bounded", "bound_text", "rule_of", "unbounded"]

Bound = date | datetime | str
"""A date, an aware datetime, or either of them in ISO 8601."""

_HOW = 'Give a date ("2027-03-31") or an instant with its zone ("2027-03-31T18:00+02:00").'


def bound_text(value: Bound, what: str) -> str:
    """Return a bound as it is kept: a date, or an instant in UTC."""
    found: date | datetime = _read(value, what) if isinstance(value, str) else value
    if isinstance(found, datetime):
        if found.utcoffset() is None:
            raise ScheduleError(f"{what}={value!r:.80} has no time zone. {_HOW}")
        return iso(to_us(found.astimezone(UTC)))
    if isinstance(found, date):
        return found.isoformat()
    raise ScheduleError(f"{what}={value!r:.80} is neither a date nor an instant. {_HOW}")


def _read(text: str, what: str) -> date | datetime:
    try:
        return date.fromisoformat(text) if len(text) == len("2027-03-31") else datetime.fromisoformat(text)
    except ValueError:
        raise ScheduleError(f"{what}={text!r:.80} cannot be read. {_HOW}") from None


class Bounded(Native):
    """Another schedule from `starts` to `ends`, both included; None leaves that side open."""

    __slots__ = ("ends", "ends_us", "schedule", "starts", "starts_us", "zone")

    schedule: Schedule
    starts: str | None
    ends: str | None
    starts_us: int
    """The first instant that may be a slot."""
    ends_us: int
    """The last instant that may be a slot."""

    def __init__(self, schedule: Schedule, starts: Bound | None = None, ends: Bound | None = None) -> None:
        if isinstance(schedule, Bounded):
            raise ScheduleError("the schedule has its first and last instant already; give starts= and ends= once.")
        zone = instants.zone(schedule)
        put = object.__setattr__
        put(self, "schedule", schedule)
        put(self, "zone", zone)
        put(self, "starts", None if starts is None else bound_text(starts, "starts"))
        put(self, "ends", None if ends is None else bound_text(ends, "ends"))
        put(self, "starts_us", FIRST * MICRO if self.starts is None else _moment(self.starts, zone, last=False))
        put(self, "ends_us", LAST * MICRO if self.ends is None else _moment(self.ends, zone, last=True))
        if self.ends_us < self.starts_us:
            raise ScheduleError(f"ends={self.ends!r} is before starts={self.starts!r}: there would never be a slot.")

    def after_us(self, us: int) -> int | None:
        found = instants.after(self.schedule, max(us, self.starts_us - 1))
        return None if found is None or found > self.ends_us else found

    def before_us(self, us: int) -> int | None:
        found = instants.before(self.schedule, min(us, self.ends_us + 1))
        return None if found is None or found < self.starts_us else found

    def count_us(self, a: int, b: int) -> int:
        a, b = max(a, self.starts_us - 1), min(b, self.ends_us)
        return instants.count(self.schedule, a, b) if a < b else 0

    def nominal(self, us: int) -> str | None:
        return instants.nominal(self.schedule, us)

    def instant_of(self, nominal: str) -> int | None:
        return instants.instant_of(self.schedule, nominal)

    def describe(self) -> str:
        from_when = "" if self.starts is None else f", from {_shown(self.starts)}"
        until = "" if self.ends is None else f", until {_shown(self.ends)}"
        return f"{self.schedule.describe()}{from_when}{until}"

    def _identity(self) -> tuple[object, ...]:
        return self.schedule, self.starts, self.ends

    def __reduce__(self) -> tuple[object, ...]:
        return Bounded, (self.schedule, self.starts, self.ends)

    def __repr__(self) -> str:
        return f"Bounded({self.schedule!r}, {self.starts!r}, {self.ends!r})"


def unbounded(schedule: Schedule) -> Schedule:
    """Return the schedule without its first and last instant."""
    return schedule.schedule if isinstance(schedule, Bounded) else schedule


def rule_of(schedule: Schedule) -> Schedule:
    """Return the rule below bounds and spread: a cron expression, a period, or one of them under a calendar."""
    inner = unbounded(schedule)
    return inner.schedule if isinstance(inner, Spread) else inner


def _moment(text: str, zone: str, *, last: bool) -> int:
    """Return the instant of a bound; of a date the first or the last microsecond of that day in the zone."""
    if "T" in text:
        return to_us(datetime.fromisoformat(text))
    day = date.fromisoformat(text) + timedelta(days=last)
    # A midnight that a clock change skips is read by the clocks before it: that is the moment of the change.
    return to_us(datetime.combine(day, time(), load_zone(zone).info)) - last


def _shown(text: str) -> str:
    return text if "T" not in text else f"{from_us(to_us(datetime.fromisoformat(text))):%Y-%m-%d %H:%M:%S} UTC"
