"""Store calls from a coroutine: on our own threads, and never left half done by a cancellation.

`asyncio.to_thread` would be shorter. It shares one small pool with the whole application: calls that wait for a store
would keep the application's out, and the application's calls would delay the release of a lock.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["end_threads", "in_thread"]

T = TypeVar("T")

_CALLS = 8
"""Maximum number of concurrent store calls; further ones wait."""

_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, ThreadPoolExecutor] = WeakKeyDictionary()
"""The threads of each loop. They end when it is collected, or with `end_threads`. The child of a fork has another loop,
and so no thread of its parent."""


async def in_thread(call: Callable[[], T], *, undo: Callable[[T], Any] | None = None, alone: bool = False) -> T:
    """Carry a call out on a thread. A cancellation waits for its end, undoes its result, and is raised only then.

    An abandoned call would take a lock, or open a key, for a caller that is gone. `alone`: the call may wait for other
    coroutines, so that it must not occupy a thread that they need.
    """
    task = asyncio.ensure_future(_on_thread(call, alone))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.cancelled():
            raise
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                continue  # cancelled once more: keep waiting
        if undo is not None and task.exception() is None:
            result = task.result()
            await _on_thread(lambda: undo(result), alone)
        raise


async def _on_thread(call: Callable[[], T], alone: bool) -> T:
    """Carry a call out in the caller's context, on one of the loop's threads or on one that ends with the call."""
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    if alone:
        with_it = ThreadPoolExecutor(1, "solocron-call")
        try:
            return await loop.run_in_executor(with_it, context.run, call)
        finally:
            with_it.shutdown(wait=False)
    pool = _pools.get(loop)
    if pool is None:
        pool = _pools[loop] = ThreadPoolExecutor(_CALLS, "solocron-calls")
    return await loop.run_in_executor(pool, context.run, call)


def end_threads(loop: asyncio.AbstractEventLoop) -> None:
    """Let the threads of a loop end that is about to be closed: a traceback may keep the loop itself for long."""
    pool = _pools.pop(loop, None)
    if pool is not None:
        pool.shutdown(wait=False)
