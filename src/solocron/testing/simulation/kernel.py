"""Virtual time and greenlets: the only clock, the only randomness, the only order of things in a simulated world."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from solocron.errors import MissingExtra

try:
    from greenlet import GreenletExit, greenlet
except ImportError as error:
    raise MissingExtra('simulated clusters need greenlet: pip install "solocron[testing]".') from error

__all__ = ["GreenletExit", "Kernel", "Process", "SimEvent", "SimMutex", "SimTask", "SimTurns", "Storm", "Timer"]


EPOCH = 1_790_000_000.0

_MOMENT = 1e-6

BUSY = 200_000
"""Events that may happen within one simulated second; more is a loop that never sleeps."""


class Storm(AssertionError):
    """I20: something in the world loops without letting time pass."""


class Timer:
    """An event to come; can be cancelled."""

    __slots__ = ("action", "args")

    def __init__(self, action: Callable[..., None], args: tuple[Any, ...]) -> None:
        self.action: Callable[..., None] | None = action
        self.args = args

    def cancel(self) -> None:
        self.action = None


class Kernel:
    """A heap of events to come. Events of the same moment happen in an order that the seed draws."""

    def __init__(self, seed: int, epoch: float = EPOCH) -> None:
        self.now = 0.0
        self.epoch = epoch
        """The beginning of time, in seconds since 1970."""
        self.dice = random.Random(seed)  # noqa: S311 - a simulation is the place for reproducible dice
        self.steps = 0
        self.halted = False
        """True once something failed and there is no point in going on."""
        self.closed = False
        self._heap: list[tuple[float, float, int, Timer]] = []
        self._count = 0
        self._hub = greenlet.getcurrent()
        self._second = 0.0
        self._busy = BUSY
        self.current: SimTask | None = None
        self.tasks: dict[SimTask, None] = {}
        """Every task that has not ended. Killed ones stay: freeing them would run their `finally` blocks, which no
        kill -9 does."""

    def at(self, moment: float, action: Callable[..., None], *args: Any) -> Timer:
        timer = Timer(action, args)
        self._count += 1
        heapq.heappush(self._heap, (max(moment, self.now), self.dice.random(), self._count, timer))
        return timer

    def after(self, delay: float, action: Callable[..., None], *args: Any) -> Timer:
        timer = Timer(action, args)
        self._count += 1
        heapq.heappush(self._heap, (self.now + delay, self.dice.random(), self._count, timer))
        return timer

    def run(self, until: float) -> None:
        """Let everything happen up to a moment, or until something failed."""
        heap, pop = self._heap, heapq.heappop
        while heap and heap[0][0] <= until and not self.halted:
            moment, _, _, timer = pop(heap)
            action = timer.action
            if action is not None:
                timer.action = None
                self.now = moment
                self.steps += 1
                if self.steps > self._busy:
                    self._look_at_the_pace()
                action(*timer.args)
        if not self.halted:
            self.now = max(self.now, until)

    def _look_at_the_pace(self) -> None:
        if self.now - self._second < 1.0:
            raise Storm(f"I20: {BUSY} things happened within a second; the world does not come to rest")
        self._second, self._busy = self.now, self.steps + BUSY

    def switch_to(self, task: SimTask, value: Any = None) -> None:
        """Let a task continue until it waits again; only the hub does this."""
        before, self.current = self.current, task
        task.turn += 1
        try:
            task.green.switch(value)
        finally:
            self.current = before

    def pause_current(self) -> Any:
        """Give up control until the current task is resumed; return the value it was resumed with."""
        if self.closed:
            raise GreenletExit
        value = self._hub.switch()
        if isinstance(value, BaseException):
            raise value
        return value

    def close(self) -> None:
        """Release every task at the end of the world: Python could not free them by itself."""
        self.closed = True
        for task in list(self.tasks):
            before, self.current = self.current, task
            try:
                task.green.throw(GreenletExit)
            except BaseException:  # noqa: BLE001, S110 - whatever its last blocks do, the world is over
                pass
            finally:
                self.current = before
        self.tasks.clear()
        self._heap.clear()


class Process:
    """A node's process: can be frozen, suspended, thawed and killed, with everything that runs in it."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self.kernel = kernel
        self.name = name
        self.alive = True
        self.frozen = False
        self.frozen_spans: list[tuple[float, float]] = []
        self.slept = 0.0
        """Seconds of suspend so far: boot time went on, the clock on which waits are counted did not."""
        self._suspended = False
        self._frozen_at = 0.0
        self._backlog: list[tuple[SimTask, Any, int]] = []
        self._asleep: list[tuple[SimTask, int, float]] = []
        self._thrown: list[tuple[SimTask, BaseException]] = []
        self.tasks: dict[SimTask, None] = {}

    def spawn(self, body: Callable[[], None], name: str) -> SimTask:
        task = SimTask(self, body, name)
        self.resume_soon(task)
        return task

    def resume_soon(self, task: SimTask, value: Any = None) -> None:
        """Let a task continue from where it waits now; if it has continued by then, this was not meant for it."""
        self.kernel.after(0.0, self.resume, task, value, task.turn)

    def resume(self, task: SimTask, value: Any, turn: int) -> None:
        """Let a task continue, unless its process is frozen (then later) or dead (then never)."""
        if not self.alive or task.done or task.turn != turn:
            return
        if self.frozen:
            self._backlog.append((task, value, turn))
            return
        self.kernel.switch_to(task, value)

    def throw(self, task: SimTask, error: BaseException) -> None:
        """Raise into a task wherever it waits; in a frozen process, where it waits after the thaw."""
        if self.frozen:
            self._thrown.append((task, error))
        else:
            self.resume(task, error, task.turn)

    def time_out(self, task: SimTask, turn: int, due: float) -> None:
        """End a wait whose time is over, unless the process slept meanwhile: then it waits for the rest."""
        if self.frozen and self._suspended:
            self._asleep.append((task, turn, due))
            return
        left = due - (self.kernel.now - self.slept)
        if left > 1e-9 and task.turn == turn:
            self.kernel.after(left, self.time_out, task, turn, due)
        else:
            self.resume(task, None, turn)

    def freeze(self, *, suspend: bool = False) -> bool:
        """Freeze it, as by SIGSTOP; with `suspend` the whole machine sleeps. False if there is nothing to freeze."""
        if not self.alive or self.frozen:
            return False
        self.frozen = True
        self._suspended = suspend
        self._frozen_at = self.kernel.now
        return True

    def thaw(self) -> None:
        if not self.frozen:
            return
        self.frozen = False
        self.frozen_spans.append((self._frozen_at, self.kernel.now))
        if self._suspended:
            self.slept += self.kernel.now - self._frozen_at
        backlog, self._backlog = self._backlog, []
        for task, value, turn in backlog:
            self.kernel.after(0.0, self.resume, task, value, turn)
        thrown, self._thrown = self._thrown, []
        for task, error in thrown:
            self.kernel.after(0.0, self.throw, task, error)
        asleep, self._asleep = self._asleep, []
        for task, turn, due in asleep:
            self.kernel.after(0.0, self.time_out, task, turn, due)

    def kill(self) -> None:
        """Kill it, as by kill -9: nothing of it ever runs again, not even `finally`."""
        self.alive = False
        self.tasks = {}

    def was_frozen(self, since: float, until: float) -> bool:
        """Return whether it was frozen at any time between two moments."""
        if self.frozen and self._frozen_at <= until:
            return True
        return any(begin <= until and end >= since for begin, end in reversed(self.frozen_spans))


class SimTask:
    """A loop or a body of a node, as a greenlet."""

    __slots__ = ("_ended", "done", "green", "name", "process", "turn")

    def __init__(self, process: Process, body: Callable[[], None], name: str) -> None:
        self.process = process
        self.name = name
        self.done = False
        self.turn = 0
        self._ended: list[Callable[[], None]] = []
        process.tasks[self] = None
        process.kernel.tasks[self] = None

        def run(_: Any) -> None:
            try:
                body()
            finally:
                self.done = True
                process.tasks.pop(self, None)
                process.kernel.tasks.pop(self, None)
                for call in self._ended:
                    call()

        self.green = greenlet(run, parent=process.kernel._hub)

    def join(self, timeout: float | None = None) -> None:
        if not self.done:
            ended = SimEvent(self.process.kernel)
            self._ended.append(ended.set)
            ended.wait(timeout)

    def is_alive(self) -> bool:
        return not self.done


class SimEvent:
    """An event whose waiters are tasks; the timeout is counted in the world's time."""

    __slots__ = ("_flag", "_kernel", "_rate", "_waiters")

    def __init__(self, kernel: Kernel, rate: float = 1.0) -> None:
        self._kernel = kernel
        self._rate = rate
        self._flag = False
        self._waiters: list[SimTask] = []

    def set(self) -> None:
        self._flag = True
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for task in waiters:
                task.process.resume_soon(task)

    def clear(self) -> None:
        self._flag = False

    def is_set(self) -> bool:
        return self._flag

    def wait(self, timeout: float | None = None) -> bool:
        if self._flag:
            return True
        kernel = self._kernel
        task = kernel.current
        assert task is not None, "only a task of a node can wait"
        self._waiters.append(task)
        timer = None
        if timeout is not None:
            # At least a microsecond, if any: the rest of a time may be too little to move a clock made of floats.
            process, delay = task.process, max(timeout, _MOMENT) / self._rate if timeout > 0 else 0.0
            timer = kernel.after(delay, process.time_out, task, task.turn, kernel.now + delay - process.slept)
        try:
            kernel.pause_current()
        finally:
            if task in self._waiters:
                self._waiters.remove(task)
            if timer is not None:
                timer.cancel()
        return self._flag


class SimMutex(AbstractContextManager["SimMutex"]):
    """Nothing is preempted between switch points, so a mutex that is found taken was kept across one: a bug."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken = False

    def __enter__(self) -> SimMutex:
        if self._taken:
            raise AssertionError("a mutex of the engine was kept across a store call or a wait")
        self._taken = True
        return self

    def __exit__(self, *exc: object) -> None:
        self._taken = False


class SimTurns:
    """A lock that may be kept across calls: those who wait for it are tasks, and the first of them has it next."""

    __slots__ = ("_kernel", "_rate", "_taken", "_waiting")

    def __init__(self, kernel: Kernel, rate: float = 1.0) -> None:
        self._kernel = kernel
        self._rate = rate
        self._taken = False
        self._waiting: list[SimEvent] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not self._taken:
            self._taken = True
            return True
        if not blocking:
            return False
        turn = SimEvent(self._kernel, self._rate)
        self._waiting.append(turn)
        try:
            if turn.wait(None if timeout < 0 else timeout):
                return True
        except BaseException:  # stopped while it waited: the turn must not go to it
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                self.release()
            raise
        self._waiting.remove(turn)
        return False

    def release(self) -> None:
        if self._waiting:
            self._waiting.pop(0).set()
        else:
            self._taken = False
