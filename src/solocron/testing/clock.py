"""A clock that stands still until a test moves it, and schedulers that use it.

    clock = ManualClock(datetime(2027, 1, 3, 12, tzinfo=UTC))
    scheduler = clock.scheduler(report)
    scheduler.tick()                                  # registers
    clock.move_to(datetime(2027, 1, 4, 9, tzinfo=UTC))
    (run,) = scheduler.tick()

The store's clock decides what is due, so this one belongs to a store: a memory store of its own, shared by all the
schedulers that it makes. Nothing is patched.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from solocron.clock import from_us, to_us
from solocron.duration import parse_duration
from solocron.errors import InvalidError
from solocron.scheduler import Scheduler
from solocron.stores.memory import MemoryStore, World

__all__ = ["ManualClock"]

Span = timedelta | int | float | str


class ManualClock:
    """Time that passes only when a test moves it; it never goes back."""

    def __init__(self, now: datetime | None = None) -> None:
        self._now = to_us(_aware(now or datetime(2026, 1, 1, tzinfo=UTC)))
        self._world = World(clock=lambda: self._now)

    @property
    def now(self) -> datetime:
        """The time, in UTC."""
        return from_us(self._now)

    def advance(self, duration: Span) -> datetime:
        """Let time pass."""
        return self.move_to(self.now + parse_duration(duration, what="duration"))

    def move_to(self, moment: datetime) -> datetime:
        """Let time pass until a moment."""
        if to_us(_aware(moment)) < self._now:
            raise InvalidError(
                f"{moment.isoformat()} is over: it is {self.now.isoformat()}. A manual clock goes only forward."
            )
        self._now = to_us(moment)
        MemoryStore(world=self._world).signal()  # nodes that wait for an instant look again
        return self.now

    def store(self, namespace: str = "default") -> MemoryStore:
        """Return a client of the one store that uses this clock."""
        return MemoryStore(namespace=namespace, world=self._world)

    def scheduler(self, *targets: object, **settings: Any) -> Scheduler:
        """Return a scheduler on that store, with the jobs of these modules, objects or functions.

        Nothing is started.
        """
        made = Scheduler(self.store(settings.pop("namespace", "default")), enabled=True, **settings)
        if targets:
            made.discover(*targets)
        return made


def _aware(moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        raise InvalidError(f"{moment!r} has no time zone; pass an aware datetime.")
    return moment
