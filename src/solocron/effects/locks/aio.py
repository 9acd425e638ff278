"""Calls of the store from a coroutine: on a thread, and never left half done by a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["in_thread"]

T = TypeVar("T")


async def in_thread(call: Callable[[], T], *, undo: Callable[[T], Any] | None = None) -> T:
    """Carry a call out on a thread. A cancellation waits for its end, undoes what it brought, and only then goes on.

    A call that was simply let go would take a lock, or open a key, for somebody who is not there any more.
    """
    task = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.cancelled():
            raise
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                continue  # asked once more: the answer is still the same
        if undo is not None and task.exception() is None:
            await asyncio.to_thread(undo, task.result())
        raise
