"""Watches an event loop from outside: how long it has not responded, and which run keeps it busy.

A callback is sent to the loop and its arrival awaited, one at a time. While it has not arrived, the task that the loop
is in is the one that blocks it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from solocron.clock import SystemClock
from solocron.dispatch.contract import NAME, LoopBlock

__all__ = ["LoopWatch"]


class LoopWatch:
    """One event loop; `look` is called by one thread again and again."""

    def __init__(self, loop: asyncio.AbstractEventLoop, boot: Callable[[], float] = SystemClock.boot) -> None:
        self.loop = loop
        self._boot = boot
        self._sent: float | None = None
        self._arrived: float | None = None
        self._run: str | None = None

    def look(self) -> LoopBlock | None:
        """Return how long the loop has not responded, or how long it had not at the last look; None if it is over."""
        if self.loop.is_closed() or not self.loop.is_running():
            self._sent = None
            return None
        sent, arrived = self._sent, self._arrived
        if sent is None:
            self._send()
            return LoopBlock(since=self._boot(), seconds=0.0, run=None, over=True)
        if arrived is None:
            self._run = self._run or _current_run(self.loop)
            return LoopBlock(since=sent, seconds=self._boot() - sent, run=self._run, over=False)
        found = LoopBlock(since=sent, seconds=arrived - sent, run=self._run, over=True)
        self._send()
        return found

    def _send(self) -> None:
        self._run, self._arrived, self._sent = None, None, self._boot()
        try:
            self.loop.call_soon_threadsafe(self._arrive)
        except RuntimeError:  # it was closed in this very moment
            self._sent = None

    def _arrive(self) -> None:
        self._arrived = self._boot()


def _current_run(loop: asyncio.AbstractEventLoop) -> str | None:
    """Return the run whose task the loop is in; None if that is none of ours."""
    task = asyncio.current_task(loop)
    name = "" if task is None else task.get_name()
    return name.removeprefix(NAME) if name.startswith(NAME) else None
