"""A fixed period, counted from 1970-01-01 00:00 UTC, so that all nodes agree on the slots without communication."""

from __future__ import annotations

from datetime import timedelta

from solocron.duration import format_duration, parse_duration, to_us
from solocron.errors import ScheduleError
from solocron.schedules.native import FIRST, LAST, MICRO, Native

__all__ = ["Every"]

_SHORTEST = 1_000


class Every(Native):
    """Slots at every whole multiple of the period since 1970 UTC; clock changes do not concern it."""

    __slots__ = ("period_us",)

    zone = "UTC"
    period_us: int

    def __init__(self, period: timedelta | int | float | str) -> None:
        period_us = to_us(parse_duration(period, what="every"))
        if period_us < _SHORTEST:
            raise ScheduleError(f"every: {period!r} is too short; use 1ms or more.")
        object.__setattr__(self, "period_us", period_us)

    @property
    def period(self) -> timedelta:
        return timedelta(microseconds=self.period_us)

    def after_us(self, us: int) -> int | None:
        found = (max(us, FIRST * MICRO - 1) // self.period_us + 1) * self.period_us
        return found if found < LAST * MICRO else None

    def before_us(self, us: int) -> int | None:
        found = (min(us, LAST * MICRO) - 1) // self.period_us * self.period_us
        return found if found >= FIRST * MICRO else None

    def count_us(self, a: int, b: int) -> int:
        a, b = max(a, FIRST * MICRO - 1), min(b, LAST * MICRO - 1)
        return max(0, b // self.period_us - a // self.period_us)

    def describe(self) -> str:
        return f"Every {format_duration(self.period)}"

    def _identity(self) -> tuple[object, ...]:
        return (self.period_us,)

    def __reduce__(self) -> tuple[object, ...]:
        return Every, (self.period,)

    def __repr__(self) -> str:
        return f"Every({format_duration(self.period)!r})"
