"""The schedule protocol: a pure rule from which instants follow. It knows no job, no store and no clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Protocol, runtime_checkable

__all__ = ["Schedule"]


@runtime_checkable
class Schedule(Protocol):
    """Any class with these methods is a schedule; all datetimes are aware, those returned in UTC.

    The same definition must give the same slots on every node, today and next year: no clock, no random numbers,
    no state. Slots are distinct and ordered.
    """

    def after(self, t: datetime, /) -> datetime | None:
        """Return the first slot strictly after `t`; None if there will never be one."""
        ...

    def before(self, t: datetime, /) -> datetime | None:
        """Return the last slot strictly before `t`; None if there was none."""
        ...

    def between(self, a: datetime, b: datetime, /) -> Iterator[datetime]:
        """Yield the slots after `a` and not after `b`, in order."""
        ...

    def count(self, a: datetime, b: datetime, /) -> int:
        """Return the number of slots after `a` and not after `b`, without walking them one by one."""
        ...

    def describe(self) -> str:
        """Return one line for people."""
        ...
