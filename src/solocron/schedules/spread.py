"""Spreads herds: a stable number from a job's name, the same on every replica, and a schedule shifted by it."""

from __future__ import annotations

from datetime import timedelta

from solocron.duration import format_duration, parse_duration, to_us
from solocron.errors import InvalidError, ScheduleError
from solocron.schedules import instants
from solocron.schedules.contract import Schedule
from solocron.schedules.native import Native

__all__ = ["Spread", "spread", "stable_number"]

_STEP = 1_000


def stable_number(seed: str, purpose: str, below: int) -> int:
    """Return a number in [0, below) that depends on the strings alone: equal in every process, release and platform."""
    from hashlib import sha256  # not Python's hash(), which differs from process to process

    digest = sha256(f"{purpose}\0{seed}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % below


class Spread(Native):
    """Another schedule, every slot of it later by one and the same offset."""

    __slots__ = ("offset_us", "schedule", "seed", "within_us", "zone")

    schedule: Schedule
    within_us: int
    seed: str
    offset_us: int

    def __init__(self, schedule: Schedule, within: timedelta | int | float | str, seed: str) -> None:
        if isinstance(schedule, Spread):
            raise ScheduleError("the schedule is spread already; spread it once, over the whole span.")
        if not seed:
            raise InvalidError("spread needs the job's name: the offset follows from it.")
        within_us = to_us(parse_duration(within, what="spread"))
        if within_us < _STEP:
            raise InvalidError(
                f"spread: {within!r} leaves nothing to spread over; use 1ms or more, or no spread at all."
            )
        put = object.__setattr__
        put(self, "schedule", schedule)
        put(self, "within_us", within_us)
        put(self, "seed", seed)
        put(self, "zone", instants.zone(schedule))
        put(self, "offset_us", stable_number(seed, "spread", within_us // _STEP) * _STEP)

    @property
    def within(self) -> timedelta:
        return timedelta(microseconds=self.within_us)

    def after_us(self, us: int) -> int | None:
        found = instants.after(self.schedule, us - self.offset_us)
        return None if found is None else found + self.offset_us

    def before_us(self, us: int) -> int | None:
        found = instants.before(self.schedule, us - self.offset_us)
        return None if found is None else found + self.offset_us

    def count_us(self, a: int, b: int) -> int:
        return instants.count(self.schedule, a - self.offset_us, b - self.offset_us)

    def nominal(self, us: int) -> str | None:
        """Return the reading of the slot before it was shifted: decisions refer to that."""
        return instants.nominal(self.schedule, us - self.offset_us)

    def instant_of(self, nominal: str) -> int | None:
        found = instants.instant_of(self.schedule, nominal)
        return None if found is None else found + self.offset_us

    def describe(self) -> str:
        shift = format_duration(timedelta(microseconds=self.offset_us))
        return f"{self.schedule.describe()}, {shift} later (spread over {format_duration(self.within)})"

    def _identity(self) -> tuple[object, ...]:
        return self.schedule, self.within_us, self.seed

    def __reduce__(self) -> tuple[object, ...]:
        return Spread, (self.schedule, self.within, self.seed)

    def __repr__(self) -> str:
        return f"spread({self.schedule!r}, {format_duration(self.within)!r}, {self.seed!r})"


def spread(schedule: Schedule, within: timedelta | int | float | str, seed: str) -> Spread:
    """Return `schedule`, later by a stable offset in [0, within) that follows from `seed`, the job's name."""
    return Spread(schedule, within, seed)
