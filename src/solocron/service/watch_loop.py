"""Lets the watcher look for as long as a stream is open or a page was asked for in the last minute, and not longer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from solocron.service.board.pace import TellingPace
from solocron.service.board.watcher import QUIET, Watcher
from solocron.service.live import Streams

__all__ = ["WatchLoop"]


class WatchLoop:
    """A task on the event loop; each pass runs on a thread."""

    def __init__(
        self,
        watcher: Watcher,
        streams: Streams,
        in_thread: Callable[[Callable[[], float]], Awaitable[float]],
        *,
        pace: TellingPace,
    ) -> None:
        self._watcher = watcher
        self._streams = streams
        self._pace = pace
        self._told = watcher.changes.last
        self._in_thread = in_thread
        self._until = 0.0
        self._task: asyncio.Task[None] | None = None
        self._now = asyncio.Event()

    def keep(self) -> None:
        """Go on for another minute; begin if it does not run."""
        self._until = asyncio.get_running_loop().time() + QUIET
        if self._task is None or self._task.done():
            self._now = asyncio.Event()  # an event belongs to the loop that first waited for it
            self._task = asyncio.create_task(self._run(), name="solocron-watch")

    def hasten(self) -> None:
        """Let the next pass be made at once, if passes are made at all."""
        self._watcher.hasten()
        self._now.set()

    def end(self) -> None:
        """End the task."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        time = asyncio.get_running_loop().time
        while not self._streams.stopping and (self._streams.count or time() < self._until):
            pause = await self._in_thread(self._watcher.look)
            self._tell()
            try:
                async with asyncio.timeout(pause):
                    await self._now.wait()
            except TimeoutError:
                continue
            self._now.clear()

    def _tell(self) -> None:
        """Wake the streams, unless all that is new may wait."""
        changes, last = self._watcher.changes.since(self._told)
        if changes and not self._pace.may_tell(urgent=any(one.urgent for one in changes)):
            return
        self._told = last
        self._streams.wake()
