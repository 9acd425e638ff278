"""The engine's seams in a simulated world: a runtime per process, and dispatchers whose bodies are greenlets."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from typing import Any

from solocron.clock import SECOND
from solocron.dispatch.contract import Call, Interrupt
from solocron.testing.simulation.kernel import GreenletExit, Process, SimEvent, SimMutex, SimTask

__all__ = ["Interrupted", "SimClock", "SimDispatcher", "SimRuntime"]


class Interrupted(BaseException):
    """The exception that a cancelled coroutine sees."""


def _drive(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Carry a coroutine out; there is no event loop here, so what it awaits must not need one."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError("a coroutine waited for an event loop; in a simulated world wait with cluster.sleep()")


class SimClock:
    """A node's clocks: boot time at a rate of its own, wall time with a skew; neither decides anything."""

    def __init__(self, process: Process, *, rate: float, skew: float) -> None:
        self._process = process
        self._kernel = process.kernel
        self._born = process.kernel.now
        self.rate = rate
        self._skew = skew

    def boot(self) -> float:
        return 1000.0 + (self._kernel.now - self._born) * self.rate

    def monotonic(self) -> float:
        """Return the clock that stands still in suspend: waits are counted on it, and nothing else may be."""
        return 1000.0 + (self._kernel.now - self._process.slept - self._born) * self.rate

    def wall(self) -> int:
        return round((self._kernel.epoch + self._kernel.now + self._skew) * SECOND)


class SimRng:
    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - reproducible on purpose

    def token(self) -> str:
        return f"{self._dice.getrandbits(128):032x}"

    def uniform(self, low: float, high: float) -> float:
        return self._dice.uniform(low, high)


class SimRuntime:
    """The runtime of a simulated node: greenlets instead of threads."""

    def __init__(self, process: Process, *, rate: float, skew: float, number: int) -> None:
        self._process = process
        self._number = number
        self.clock = SimClock(process, rate=rate, skew=skew)
        self.rng = SimRng(process.kernel.dice.getrandbits(64))
        self.failpoints: dict[str, Callable[[], None]] = {}

    def spawn(self, body: Callable[[], None], name: str) -> SimTask:
        return self._process.spawn(body, name)

    def event(self) -> SimEvent:
        return SimEvent(self._process.kernel, self.clock.rate)

    def mutex(self) -> SimMutex:
        return SimMutex()

    def process(self) -> int:
        return self._number

    def failpoint(self, name: str) -> None:
        action = self.failpoints.pop(name, None)
        if action is not None:
            action()
            self.event().wait(0)  # a process that was just killed or frozen stops here


class SimDispatcher:
    """Bodies as greenlets of the node's process; `interruptible` ones are cancelled like coroutines."""

    def __init__(self, process: Process, *, interruptible: bool) -> None:
        self._process = process
        self._interruptible = interruptible

    def submit(self, call: Call) -> Interrupt:
        inside: list[bool] = []

        def carry_out() -> None:
            if not call.begin():
                return
            value, error = None, None
            inside.append(True)
            try:
                value = call.body()()
                while self._interruptible and isinstance(value, Coroutine):
                    value = _drive(value)
            except GreenletExit:
                return  # the world is over
            except BaseException as raised:  # noqa: BLE001 - whatever a body raises is its outcome
                error = raised
            inside.clear()
            call.end(value, error)

        task = self._process.spawn(carry_out, call.name)

        def interrupt() -> None:
            # Into whatever the body waits for when its turn comes, as a cancelled coroutine would see it.
            if self._interruptible:
                self._process.kernel.after(0.0, strike)

        def strike() -> None:
            if inside:
                inside.clear()
                self._process.throw(task, Interrupted())

        return interrupt

    def close(self) -> None:
        """Do nothing: nothing is kept."""
