"""The scheduler's methods, awaited: each runs on a thread of its own, so a web handler never blocks its loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from solocron.durable.requests import check_connection, leave_async
from solocron.model.request import run_named

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler

__all__ = ["Aio"]

_METHODS = frozenset(
    {"stop", "tick", "jobs", "job", "runs", "run", "nodes", "limits", "status", "next"}
    | {"trigger", "wait", "pause", "resume", "resume_preview", "cancel", "add", "remove"}
    | {"calendar", "calendars", "next_notes", "rerun", "backfill", "backfills"}
    | {"locks", "force_release"}
)


class Aio:
    """`await scheduler.aio.trigger(...)`: the same names, arguments and answers."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    async def start(self) -> None:
        """Start; coroutine jobs run on this very loop."""
        self._scheduler._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._scheduler.start)

    async def trigger(self, job: str, payload: Any = None, *, connection: Any = None, **options: Any) -> str:
        """As `Scheduler.trigger`; its `connection` may be one whose calls are awaited."""
        if connection is None:
            return await asyncio.to_thread(partial(self._scheduler.trigger, job, payload, **options))
        client = await asyncio.to_thread(lambda: self._scheduler.client)
        check_connection(client.store, connection)
        note = await asyncio.to_thread(partial(client.request, job, payload, **options))
        await leave_async(client.store, connection, note)
        return run_named(note)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _METHODS:
            raise AttributeError(f"scheduler.aio has no {name!r}; it has start, {', '.join(sorted(_METHODS))}")
        method = getattr(self._scheduler, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(partial(method, *args, **kwargs))

        return call
