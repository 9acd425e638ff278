"""Base of the built-in schedules: immutable values that compute in whole microseconds since 1970 UTC."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import datetime
from typing import NoReturn

from solocron.clock import from_us, to_us
from solocron.errors import InvalidError

__all__ = ["FIRST", "LAST", "MICRO", "Native", "instant"]

MICRO = 1_000_000

# Schedules know the years 2 to 9998: seconds since 1970, first included, last excluded. A year of room on
# either side keeps every conversion to local time inside what a datetime can hold.
FIRST = -62_104_060_800
LAST = 253_370_764_800


def instant(moment: datetime) -> int:
    """Return the instant of an aware datetime in microseconds; a naive one is refused, because its zone is unknown."""
    try:
        return to_us(moment)
    except TypeError:
        reason = f"{moment!r:.80} is not an aware datetime; give it a time zone: datetime(..., tzinfo=UTC)."
        raise InvalidError(reason) from None


class Native(ABC):
    """A built-in schedule: subclasses give the arithmetic, this gives datetimes, equality and immutability."""

    __slots__ = ()

    zone: str
    """The IANA name of the zone in which people read its slots."""

    @abstractmethod
    def after_us(self, us: int) -> int | None:
        """Return the first slot strictly after `us`."""

    @abstractmethod
    def before_us(self, us: int) -> int | None:
        """Return the last slot strictly before `us`."""

    @abstractmethod
    def count_us(self, a: int, b: int) -> int:
        """Return the number of slots after `a` and not after `b`, in closed form."""

    @abstractmethod
    def describe(self) -> str:
        """Return one line for people."""

    @abstractmethod
    def _identity(self) -> tuple[object, ...]:
        """Return the values that make two schedules of one class equal, in the order of the constructor."""

    def nominal(self, us: int) -> str | None:
        """Return the local reading of a slot, 'YYYY-MM-DDTHH:MM:SS', with '#1' the second time; None without a zone."""
        return None

    def instant_of(self, nominal: str) -> int | None:
        """Return the instant up to which everything is decided once `nominal` is, by this machine's zone data."""
        return None

    def after(self, t: datetime, /) -> datetime | None:
        """Return the first slot strictly after `t`; None if there will never be one."""
        found = self.after_us(instant(t))
        return None if found is None else from_us(found)

    def before(self, t: datetime, /) -> datetime | None:
        """Return the last slot strictly before `t`; None if there was none."""
        found = self.before_us(instant(t))
        return None if found is None else from_us(found)

    def between(self, a: datetime, b: datetime, /) -> Iterator[datetime]:
        """Yield the slots after `a` and not after `b`, in order."""
        return self._walk(instant(a), instant(b))

    def count(self, a: datetime, b: datetime, /) -> int:
        """Return the number of slots after `a` and not after `b`, in closed form."""
        return self.count_us(instant(a), instant(b))

    def _walk(self, at: int, end: int) -> Iterator[datetime]:
        step = self.after_us
        while (found := step(at)) is not None and found <= end:
            yield from_us(found)
            at = found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self is other or self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable; make a new one.")
