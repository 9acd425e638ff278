"""The scheduler's methods, awaited, on threads of its own: neither the caller's loop nor its thread pool is held up.

`asyncio.to_thread` would be shorter. It shares one small pool with the whole application: whoever waits there for runs
to end keeps every other call of the application out, and calls of the application keep ours out.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from solocron.effects.requests import check_connection, leave_async
from solocron.model.documents.request import run_named
from solocron.views import RunView

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler

__all__ = ["Aio"]

T = TypeVar("T")

_LONG = frozenset({"stop", "tick"})
"""Last as long as jobs do, so each gets a thread of its own: they must not keep calls of the store waiting."""

_METHODS = _LONG | frozenset(
    {"jobs", "get_job", "runs", "get_run", "nodes", "limits", "status", "upcoming"}
    | {"trigger", "wait", "pause", "resume", "resume_preview", "cancel", "add", "remove"}
    | {"calendar", "calendars", "upcoming_changes", "rerun", "backfill", "backfills"}
    | {"locks", "force_release"}
)

_CALLS = 8
"""Calls of the store at once; the others wait for their turn."""


class Aio:
    """`await scheduler.aio.trigger(...)`: the same names, arguments and answers."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._made = _Pools()

    async def start(self) -> None:
        """Start; coroutine jobs run on this very loop."""
        self._scheduler._loop = asyncio.get_running_loop()
        await _alone(self._scheduler.start)

    async def trigger(self, job: str, payload: Any = None, *, connection: Any = None, **options: Any) -> str:
        """As `Scheduler.trigger`; its `connection` may be one whose calls are awaited."""
        pool = self._pools.calls
        if connection is None:
            return await _on(pool, partial(self._scheduler.trigger, job, payload, **options))
        client = await _on(pool, lambda: self._scheduler.client)
        check_connection(client.store, connection)
        note = await _on(pool, partial(client.request, job, payload, **options))
        await leave_async(client.store, connection, note)
        return run_named(note)

    async def wait(self, run: str, timeout: timedelta | int | float | str | None = None) -> RunView:
        """As `Scheduler.wait`; holds no thread between two looks at the run."""
        waiting = await _on(self._pools.looks, lambda: self._scheduler.client.waiting(run, timeout))
        while (view := await _on(self._pools.looks, waiting.look)) is None:
            await asyncio.sleep(waiting.pause)
        return view

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _METHODS:
            raise AttributeError(f"scheduler.aio has no {name!r}; it has start, {', '.join(sorted(_METHODS))}")
        method = getattr(self._scheduler, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            body = partial(method, *args, **kwargs)
            return await (_alone(body) if name in _LONG else _on(self._pools.calls, body))

        return call

    def close(self) -> None:
        """Let the threads end after what was handed to them; a later call gets new ones.

        A pool that is let go of does that by itself. `shutdown()` would also refuse a call that another thread is just
        handing over, and in the child of a fork its lock may be held by a thread that is not there.
        """
        self._made = _Pools()

    @property
    def _pools(self) -> _Pools:
        if self._made.process != os.getpid():  # after a fork: a pool believes in threads that only its parent has
            self._made = _Pools()
        return self._made


class _Pools:
    """Threads for calls of the store, and one thread for the looks of all who wait; none before they are needed."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.calls = ThreadPoolExecutor(_CALLS, "solocron-aio")
        self.looks = ThreadPoolExecutor(1, "solocron-aio-wait")


async def _on(pool: Executor, call: Callable[[], T]) -> T:
    """Carry a call out on a thread of the pool, in the caller's context."""
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(pool, context.run, call)


async def _alone(call: Callable[[], T]) -> T:
    """Carry a call out on a thread that ends with it."""
    pool = ThreadPoolExecutor(1, "solocron-aio-long")
    try:
        return await _on(pool, call)
    finally:
        pool.shutdown(wait=False)
