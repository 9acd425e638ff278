"""A loop is a step and a task: it sleeps until the step's next moment or until someone wakes it, and never dies.

Whatever a step raises, it is called again. What it had done by then may not have been told to anybody: once a step
succeeds again, `recovered` is called, so that whoever depends on the loop looks for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from solocron.errors import StoreError
from solocron.events import Events
from solocron.runtime import Runtime, Task

__all__ = ["Loop", "Patience"]

_SHORTEST = 0.001


class Loop:
    """Calls `step(boot time) -> boot time of the next call` until it is stopped; an exception is told and survived."""

    def __init__(
        self,
        name: str,
        step: Callable[[float], float],
        *,
        runtime: Runtime,
        events: Events,
        patience: float = 1.0,
    ) -> None:
        """`patience`: the most seconds between two tries."""
        self.name = name
        self._step = step
        self._runtime = runtime
        self._events = events
        self._patience = patience
        self._failures = 0
        self.recovered: Callable[[], None] = lambda: None
        self._woken = runtime.event()
        self._stopping = False
        self._task: Task | None = None

    def start(self) -> None:
        self._task = self._runtime.spawn(self._run, f"solocron-{self.name}")

    def wake(self) -> None:
        if not self._woken.is_set():  # a loop that has still to wake up will see this too
            self._woken.set()

    def stop(self) -> None:
        """Ask it to end after its current step."""
        self._stopping = True
        self._woken.set()

    def join(self, timeout: float | None = None) -> bool:
        if self._task is not None:
            self._task.join(timeout)
            return not self._task.is_alive()
        return True

    def _run(self) -> None:
        while not self._stopping:
            # Not even a machine that has no memory left to wait with ends a loop.
            with suppress(Exception, SystemExit):
                self._turn()

    def _turn(self) -> None:
        """One step, and the sleep after it."""
        self._woken.clear()
        now = self._runtime.clock.boot()
        try:
            at = self._step(now)
            failures, self._failures = self._failures, 0
            if failures:
                self.recovered()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a loop of a node goes on, whatever happens in one step
            self._failures += 1
            at = now + Patience.delay(self._failures, self._patience)
            with suppress(Exception):  # nor may the telling end it
                self._tell(error)
        pause = at - self._runtime.clock.boot()
        if pause > 0:
            self._woken.wait(max(pause, _SHORTEST))

    def _tell(self, error: BaseException) -> None:
        if isinstance(error, StoreError):
            self._events.emit("store error", loop=self.name, error=str(error), failures=self._failures)
        else:
            self._events.emit("loop error", loop=self.name, error=repr(error), exception=error, failures=self._failures)


class Patience:
    """How long to wait before trying a store that is away once more: growing, capped."""

    @staticmethod
    def delay(failures: int, most: float = 2.0) -> float:
        return min(0.05 * 2.0 ** min(failures - 1, 10), most)
