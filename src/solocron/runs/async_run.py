"""`AsyncRun`: the run of a coroutine, and of a plain function on an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sized
from typing import TYPE_CHECKING, Any, TypeVar

from solocron.runs.base import BaseRun

if TYPE_CHECKING:
    from datetime import timedelta

    from solocron.effects.step import AsyncStep
    from solocron.model.policy import Backoff

__all__ = ["AsyncRun"]

T = TypeVar("T")


class AsyncRun(BaseRun):
    """One attempt of a coroutine: what does I/O is awaited."""

    async def track(self, items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
        """Iterate over items of either kind with progress, stopping where the run must stop."""
        total, done = len(items) if isinstance(items, Sized) else None, 0
        self.progress(done, total)
        async for item in items if isinstance(items, AsyncIterable) else _each(items):
            self.check()
            yield item
            done += 1
            self.progress(done, total)

    def step(
        self,
        name: str,
        *,
        retries: int = 0,
        timeout: timedelta | int | float | str | None = None,
        backoff: Backoff | None = None,
    ) -> AsyncStep:
        """`await run.step("charge", retries=2).call(charge, customer)`: carry a function out once per run.

        A later attempt gets its saved result (small JSON). All arguments of `call` after the function go to it.
        """
        return self._verbs().step_async(name, retries=retries, timeout=timeout, backoff=backoff)

    async def sleep(self, duration: timedelta | int | float | str, *, name: str | None = None) -> None:
        """Wait; after a crash the next attempt waits only for what is left."""
        await self._verbs().sleep_async(duration, name=name)

    async def guard(self, connection: Any) -> None:
        """Inside your open transaction: raise `StaleFence` if that database has seen a higher fence of this job."""
        await self._verbs().guard_async(connection)

    async def claim_items(self, connection: Any, name: str, ids: Iterable[T]) -> list[T]:
        """Inside your open transaction: return those items that no run has claimed under this name before."""
        found: list[T] = await self._verbs().claim_items_async(connection, name, ids)
        return found


async def _each(items: Iterable[T]) -> AsyncIterator[T]:
    for item in items:
        yield item
