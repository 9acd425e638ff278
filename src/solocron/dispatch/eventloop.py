"""Carries coroutines out on the application's event loop, or on a private one that starts when first needed."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401 - asyncio would import it in a thread, at its first call of one
import threading
from collections.abc import Callable
from typing import Any

from solocron.dispatch.contract import Call, Interrupt, LoopBlock
from solocron.dispatch.in_thread import end_threads
from solocron.dispatch.loop_watch import LoopWatch
from solocron.jobs.unfinished import awaited

__all__ = ["LoopDispatcher"]


class LoopDispatcher:
    """Coroutines run as tasks; an interruption cancels the task from outside, from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop
        self._private: asyncio.AbstractEventLoop | None = None
        self._mutex = threading.Lock()
        # The loop keeps only weak references to tasks; these keep them alive until they are done.
        self._tasks: set[asyncio.Task[None]] = set()
        self._watch: LoopWatch | None = None

    def submit(self, call: Call) -> Interrupt:
        loop = self._running_loop()
        task: list[asyncio.Task[None]] = []
        wanted = threading.Event()

        def launch() -> None:
            task.append(loop.create_task(_carry_out(call), name=call.name))
            self._tasks.add(task[0])
            task[0].add_done_callback(self._tasks.discard)
            if wanted.is_set():
                task[0].cancel()

        def interrupt() -> None:
            wanted.set()
            _call_soon(loop, lambda: [one.cancel() for one in task])

        if not _call_soon(loop, launch):
            raise RuntimeError("the application's event loop is closed; start the scheduler inside a running loop")
        return interrupt

    def look(self) -> LoopBlock | None:
        """Return how long the loop of the jobs has not responded; None if there is none, or it does not run."""
        with self._mutex:
            loop = self._private if self._loop is None or self._loop.is_closed() else self._loop
            if loop is None:
                return None
            if self._watch is None or self._watch.loop is not loop:
                self._watch = LoopWatch(loop)
            watch = self._watch
        return watch.look()

    def close(self) -> None:
        with self._mutex:
            loop, self._private = self._private, None
        if loop is not None:
            _call_soon(loop, loop.stop)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._mutex:
            if self._loop is not None and not self._loop.is_closed():
                return self._loop
            if self._private is None:
                self._private = asyncio.new_event_loop()
                thread = threading.Thread(target=_serve, args=(self._private,), name="solocron-loop", daemon=True)
                thread.start()
            return self._private


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], Any]) -> bool:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:  # the loop is closed, and no task is left on it
        return False
    return True


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        end_threads(loop)
        loop.close()


async def _carry_out(call: Call) -> None:
    value, error = None, None
    try:
        if not call.begin():
            return
        value = await awaited(call.body()())
    except BaseException as raised:  # noqa: BLE001 - cancellation is an outcome like any other here
        error = raised
    call.end(value, error)
