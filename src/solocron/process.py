"""A process that works until a signal stops it: the signals, and `Scheduler.run_forever`."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler

__all__ = ["draining_block", "run_until_signalled", "settle_memory", "stop_signals", "wait_for"]

_LOOK = 0.5
_YOUNG = 10_000
"""Allocations between two passes of the garbage collector over young objects; Python's default is 700 to 2,000."""
_SAME_REQUEST = 0.1
"""Seconds within which a second SIGTERM is the same request: `timeout` and some supervisors signal both the process
and its group."""


@contextmanager
def stop_signals(at_first: Callable[[], None] | None = None) -> Iterator[threading.Event]:
    """Yield a flag that SIGTERM or SIGINT sets; a second signal ends the process at once with exit code 130.

    `at_first` is called with the first one, inside the handler: it must return at once. Only the main thread can have
    handlers; on another one the flag is never set.
    """
    signalled = threading.Event()
    first = 0.0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if signalled.is_set():
            if number != signal.SIGTERM or time.monotonic() - first >= _SAME_REQUEST:
                os._exit(130)
            return
        first = time.monotonic()
        signalled.set()
        if at_first is not None:
            at_first()

    numbers = (signal.SIGTERM, signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, on_signal) for number in numbers} if main else {}
    try:
        yield signalled
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait_for(signalled: threading.Event) -> None:
    """Wait for the flag of `stop_signals`."""
    # Handlers run on the main thread only, and a signal that the kernel hands to another thread, as it does right after
    # a thaw, does not end the main thread's waiting: it has to wake up by itself.
    while not signalled.wait(_LOOK):
        pass


def run_until_signalled(scheduler: Scheduler, grace: timedelta | int | float | str | None = None) -> None:
    """Start; drain at SIGTERM or the first SIGINT; a second signal ends the process at once with exit code 130."""
    with stop_signals() as signalled:
        settle_memory()
        scheduler.start()
        wait_for(signalled)
        scheduler.stop(grace)


class _DrainingBlock:
    """A block that drains once, at its end or at a SIGTERM."""

    def __init__(self, drain: Callable[[], Coroutine[Any, Any, object]]) -> None:
        self.loop = asyncio.get_running_loop()
        self.leaving = False
        self._drain = drain
        self._draining: asyncio.Task[object] | None = None

    def begin(self) -> asyncio.Task[object]:
        self._draining = self._draining or self.loop.create_task(self._drain())
        return self._draining


_blocks: list[_DrainingBlock] = []
"""Those that SIGTERM drains, all on the event loop of the main thread."""
_ending: set[asyncio.Task[None]] = set()


@asynccontextmanager
async def draining_block(drain: Callable[[], Coroutine[Any, Any, object]]) -> AsyncIterator[None]:
    """Drain at the end of the block, and at a SIGTERM that would otherwise end the process at once.

    A server that handles SIGTERM leaves the block, and its handler is left alone. A worker of hypercorn has none, and
    gets the signal as soon as another worker has ended, in the middle of its drain or just before. After a drain that
    the signal began the process ends by it, unless every block is being left: then the server ends the process.
    """
    block = _DrainingBlock(drain)
    handles = threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, _drain_and_end)
    )
    if handles:
        _blocks.append(block)
        signal.signal(signal.SIGTERM, _drain_and_end)
    try:
        yield
    finally:
        block.leaving = True
        try:
            await block.begin()
        finally:
            if handles:
                _blocks.remove(block)
            if handles and not _blocks and signal.getsignal(signal.SIGTERM) is _drain_and_end:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _drain_and_end(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM: drain every block, then let the signal end the process."""
    if _blocks:
        loop = _blocks[0].loop
        loop.call_soon_threadsafe(lambda: _ending.add(loop.create_task(_end())))


async def _end() -> None:
    await asyncio.gather(*(block.begin() for block in _blocks), return_exceptions=True)
    if not all(block.leaving for block in _blocks):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)


def settle_memory() -> None:
    """Tune the garbage collector of a process that runs only a node: it need not search long-lived objects.

    A burst makes thousands of short-lived objects, none of them in a cycle; with Python's own thresholds a tenth of a
    node's time goes into the search. Higher thresholds, or none, that the program has set are kept.
    """
    young, *older = gc.get_threshold()
    if 0 < young < _YOUNG:
        gc.set_threshold(_YOUNG, *older)
    gc.collect()
    gc.freeze()
