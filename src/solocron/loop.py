"""A loop is a step and a task: it sleeps until the step's next moment or until it is woken, and never dies.

Whatever a step raises, it is called again. What it had done by then may not have been reported: once a step succeeds
again, `recovered` is called, so that the others look for themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from solocron.errors import StoreError
from solocron.events import Events
from solocron.runtime import Runtime, Task

__all__ = ["Loop", "Signal", "growing_delay"]

_SHORTEST = 0.001


class Signal:
    """The wake-up of one loop, made before it, so that everything that must wake the loop is built with it."""

    def __init__(self, runtime: Runtime) -> None:
        self._event = runtime.event()

    def wake(self) -> None:
        if not self._event.is_set():  # a loop that has still to wake up will see this too
            self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    def clear(self) -> None:
        self._event.clear()

    def wait(self, seconds: float) -> None:
        self._event.wait(seconds)


class Loop:
    """Calls `step(boot time) -> boot time of the next call` until stopped; reports what a step raises and continues."""

    def __init__(
        self,
        name: str,
        step: Callable[[float], float],
        *,
        runtime: Runtime,
        events: Events,
        signal: Signal | None = None,
        recovered: Callable[[], None] | None = None,
        longest_pause: float = 1.0,
    ) -> None:
        """Make the loop. `longest_pause`: maximum seconds between two tries of a step that raises."""
        self.name = name
        self._step = step
        self._runtime = runtime
        self._events = events
        self._signal = signal or Signal(runtime)
        self._recovered = recovered
        self._longest_pause = longest_pause
        self._failures = 0
        self._stopping = False
        self._task: Task | None = None
        self._since: float | None = None
        """Boot time at which the present step began; None between two."""

    def start(self) -> None:
        self._task = self._runtime.spawn(self._run, f"solocron-{self.name}")

    def wake(self) -> None:
        self._signal.wake()

    def stop(self) -> None:
        """Ask it to end after its current step."""
        self._stopping = True
        self._signal.wake()

    def join(self, timeout: float | None = None) -> bool:
        if self._task is not None:
            self._task.join(timeout)
            return not self._task.is_alive()
        return True

    def in_step(self, now: float) -> float | None:
        """Return the seconds since the present step began, 0 between two; None if its thread is gone unasked."""
        # Without a task it is being started, and its thread may be faster than `start`: that is not gone.
        if self._task is not None and not self._stopping and not self._task.is_alive():
            return None
        since = self._since
        return 0.0 if since is None else max(0.0, now - since)

    def _run(self) -> None:
        while not self._stopping:
            # Not even a machine without memory to wait with ends a loop.
            with suppress(Exception, SystemExit):
                self._turn()

    def _turn(self) -> None:
        """Make one step, and sleep after it."""
        self._signal.clear()
        now = self._since = self._runtime.clock.boot()
        try:
            at = self._step(now)
            failures, self._failures = self._failures, 0
            if failures and self._recovered is not None:
                self._recovered()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a loop of a node goes on, whatever happens in one step
            self._failures += 1
            at = now + growing_delay(self._failures, self._longest_pause)
            with suppress(Exception):  # nor may the report end it
                self._report(error)
        self._since = None
        pause = at - self._runtime.clock.boot()
        if pause > 0:
            self._signal.wait(max(pause, _SHORTEST))

    def _report(self, error: BaseException) -> None:
        if isinstance(error, StoreError):
            self._events.emit("store error", loop=self.name, error=str(error), failures=self._failures)
        else:
            self._events.emit("loop error", loop=self.name, error=repr(error), exception=error, failures=self._failures)


def growing_delay(failures: int, most: float = 2.0) -> float:
    """Return the seconds to wait before the next try after that many failures: growing, capped."""
    return min(0.05 * 2.0 ** min(failures - 1, 10), most)
