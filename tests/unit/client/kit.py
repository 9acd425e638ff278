"""An hourly job on a manual clock: it fails at the hours that a test names, and lets tests look while it runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from solocron import Run, Scheduler, every
from solocron.client import Client
from solocron.stores.memory import MemoryStore
from solocron.testing.clock import ManualClock
from solocron.views import SlotView

__all__ = ["FAILS", "LOOKS", "Stage"]

FAILS: set[int] = set()
LOOKS: list[Callable[[], None]] = []


@every("1h", retries=1, catch_up="skip")
def work(run: Run) -> None:
    for look in LOOKS:
        look()
    if run.slot.hour in FAILS and run.attempt == 1:
        raise ValueError("as told")


class Stage:
    """A job on a manual clock, ticked every hour unless a test lets time pass."""

    def __init__(self) -> None:
        FAILS.clear()
        LOOKS.clear()
        self.clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.scheduler: Scheduler = self.clock.scheduler(work)
        self.scheduler.tick()
        self.store: MemoryStore = self.clock.store()
        self.client = Client(self.store)
        self.begin = self.clock.now + timedelta(seconds=1)

    def hours(self, count: int) -> None:
        for _ in range(count):
            self.clock.advance("1h")
            self.scheduler.tick()

    def slots(self, ahead: int = 0) -> list[SlotView]:
        return self.client.slots("work", self.begin, self.clock.now + timedelta(hours=ahead, seconds=1))

    def statuses(self, ahead: int = 0) -> list[str]:
        return [one.status for one in self.slots(ahead)]
