"""One slot, once."""

from __future__ import annotations

from datetime import datetime

from solocron.clock import from_us, iso, to_us
from solocron.errors import ScheduleError
from solocron.schedules.native import Native

__all__ = ["At"]


class At(Native):
    """A single instant; before it there is one slot to come, after it none."""

    __slots__ = ("at_us",)

    zone = "UTC"
    at_us: int

    def __init__(self, moment: datetime) -> None:
        given: object = moment
        if not isinstance(given, datetime) or given.utcoffset() is None:
            raise ScheduleError(
                f"at: {moment!r:.80} is not an aware datetime; give one such as datetime(..., tzinfo=UTC)."
            )
        object.__setattr__(self, "at_us", to_us(moment))

    @property
    def moment(self) -> datetime:
        return from_us(self.at_us)

    def after_us(self, us: int) -> int | None:
        return self.at_us if us < self.at_us else None

    def before_us(self, us: int) -> int | None:
        return self.at_us if self.at_us < us else None

    def count_us(self, a: int, b: int) -> int:
        return int(a < self.at_us <= b)

    def describe(self) -> str:
        return f"Once, at {iso(self.at_us).replace('T', ' ').replace('Z', ' UTC')}"

    def _identity(self) -> tuple[object, ...]:
        return (self.at_us,)

    def __reduce__(self) -> tuple[object, ...]:
        return At, (self.moment,)

    def __repr__(self) -> str:
        return f"At({iso(self.at_us)!r})"
