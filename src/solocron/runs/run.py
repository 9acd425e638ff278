"""`Run`: the run of a plain function, on a thread or in a process of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, TypeVar

from solocron.runs.base import BaseRun

if TYPE_CHECKING:
    from datetime import timedelta

    from solocron.effects.step import Step
    from solocron.model.policy import Backoff

__all__ = ["Run"]

T = TypeVar("T")


class Run(BaseRun):
    """One attempt of a plain function: what does I/O blocks its thread."""

    def track(self, items: Iterable[T]) -> Iterator[T]:
        """Iterate over items with progress, stopping where the run must stop."""
        total = len(items) if isinstance(items, Sized) else None
        self.progress(0, total)
        for done, item in enumerate(items, 1):
            self.check()
            yield item
            self.progress(done, total)

    def step(
        self,
        name: str,
        *,
        retries: int = 0,
        timeout: timedelta | int | float | str | None = None,
        backoff: Backoff | None = None,
    ) -> Step:
        """`run.step("charge", retries=2).call(charge, customer)`: carry a function out once per run.

        A later attempt gets its saved result (small JSON). All arguments of `call` after the function go to it.
        """
        return self._verbs().step(name, retries=retries, timeout=timeout, backoff=backoff)

    def sleep(self, duration: timedelta | int | float | str, *, name: str | None = None) -> None:
        """Wait; after a crash the next attempt waits only for what is left."""
        self._verbs().sleep(duration, name=name)

    def guard(self, connection: Any) -> None:
        """Inside your open transaction: raise `StaleFence` if that database has seen a higher fence of this job."""
        self._verbs().guard(connection)

    def claim_items(self, connection: Any, name: str, ids: Iterable[T]) -> list[T]:
        """Inside your open transaction: return those items that no run has claimed under this name before."""
        found: list[T] = self._verbs().claim_items(connection, name, ids)
        return found
