"""The scheduler's methods, awaited: each runs on a thread of its own, so a web handler never blocks its loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler

__all__ = ["Aio"]

_METHODS = frozenset(
    {"stop", "tick", "jobs", "job", "runs", "run", "nodes", "status", "next"}
    | {"trigger", "wait", "pause", "resume", "resume_preview", "cancel", "add", "remove"}
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

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _METHODS:
            raise AttributeError(f"scheduler.aio has no {name!r}; it has start, {', '.join(sorted(_METHODS))}")
        method = getattr(self._scheduler, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(partial(method, *args, **kwargs))

        return call
