"""A boot clock that stands still until a test moves it."""

from __future__ import annotations

from solocron.clock import SystemClock

__all__ = ["BootClock"]


class BootClock(SystemClock):
    """Time of this machine, except for the boot clock."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def boot(self) -> float:
        return self.now
