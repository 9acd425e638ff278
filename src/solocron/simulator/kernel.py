"""Virtual time and greenlets: the only clock, the only dice, and the only order of things in a simulated world."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from solocron.errors import MissingExtra

try:
    from greenlet import greenlet
except ImportError as error:
    raise MissingExtra('the simulator needs greenlet: pip install "solocron[testing]".') from error

__all__ = ["Kernel", "Process", "SimEvent", "SimMutex", "SimTask", "Timer"]


EPOCH = 1_790_000_000.0


class Timer:
    """Something that will happen; can be called off."""

    __slots__ = ("action", "at")

    def __init__(self, at: float, action: Callable[[], None] | None) -> None:
        self.at = at
        self.action = action

    def cancel(self) -> None:
        self.action = None


class Kernel:
    """A heap of things to come. What falls on the same moment happens in an order that the seed draws."""

    def __init__(self, seed: int, epoch: float = EPOCH) -> None:
        self.now = 0.0
        self.epoch = epoch
        """Where time begins, in seconds since 1970."""
        self.dice = random.Random(seed)  # noqa: S311 - a simulation is the place for reproducible dice
        self.steps = 0
        self._heap: list[tuple[float, float, int, Timer]] = []
        self._count = 0
        self._hub = greenlet.getcurrent()
        self.current: SimTask | None = None
        self.graveyard: list[SimTask] = []
        """Killed tasks, kept: freeing them would run their `finally` blocks, which no kill -9 does."""

    def at(self, moment: float, action: Callable[[], None]) -> Timer:
        timer = Timer(max(moment, self.now), action)
        self._count += 1
        heapq.heappush(self._heap, (timer.at, self.dice.random(), self._count, timer))
        return timer

    def after(self, delay: float, action: Callable[[], None]) -> Timer:
        return self.at(self.now + delay, action)

    def run(self, until: float) -> None:
        """Let everything happen up to a moment."""
        while self._heap and self._heap[0][0] <= until:
            moment, _, _, timer = heapq.heappop(self._heap)
            action, timer.action = timer.action, None
            if action is not None:
                self.now = moment
                self.steps += 1
                action()
        self.now = max(self.now, until)

    def switch_to(self, task: SimTask, value: Any = None) -> None:
        """Let a task go on until it waits again; only the hub does this."""
        before, self.current = self.current, task
        task.turn += 1
        try:
            task.green.switch(value)
        finally:
            self.current = before

    def pause_current(self) -> Any:
        """Give up control until somebody resumes the current task; answers what it was resumed with."""
        value = self._hub.switch()
        if isinstance(value, BaseException):
            raise value
        return value


class Process:
    """A node's process: can be frozen, thawed and killed, with everything that runs in it."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self.kernel = kernel
        self.name = name
        self.alive = True
        self.frozen = False
        self.frozen_spans: list[tuple[float, float]] = []
        self._frozen_at = 0.0
        self._backlog: list[tuple[SimTask, Any, int]] = []
        self.tasks: list[SimTask] = []

    def spawn(self, body: Callable[[], None], name: str) -> SimTask:
        task = SimTask(self, body, name)
        self.tasks.append(task)
        self.resume_soon(task)
        return task

    def resume_soon(self, task: SimTask, value: Any = None) -> None:
        """Let a task go on from where it waits now; if it has gone on by then, this was not meant for it."""
        turn = task.turn
        self.kernel.after(0, lambda: self.resume(task, value, turn))

    def resume(self, task: SimTask, value: Any, turn: int) -> None:
        """Let a task go on, unless its process is frozen (then later) or dead (then never)."""
        if not self.alive or task.done or task.turn != turn:
            return
        if self.frozen:
            self._backlog.append((task, value, turn))
            return
        self.kernel.switch_to(task, value)

    def freeze(self) -> None:
        if self.alive and not self.frozen:
            self.frozen = True
            self._frozen_at = self.kernel.now

    def thaw(self) -> None:
        if not self.frozen:
            return
        self.frozen = False
        self.frozen_spans.append((self._frozen_at, self.kernel.now))
        backlog, self._backlog = self._backlog, []
        for task, value, turn in backlog:
            self.kernel.after(0, partial(self.resume, task, value, turn))

    def kill(self) -> None:
        """kill -9: nothing of it ever runs again, not even `finally`."""
        self.alive = False
        self.kernel.graveyard.extend(task for task in self.tasks if not task.done)
        self.tasks = []

    def was_frozen(self, since: float, until: float) -> bool:
        """Whether it was frozen at any time between two moments."""
        if self.frozen and self._frozen_at <= until:
            return True
        return any(begin <= until and end >= since for begin, end in self.frozen_spans)


class SimTask:
    """A loop or a body of a node, as a greenlet."""

    def __init__(self, process: Process, body: Callable[[], None], name: str) -> None:
        self.process = process
        self.name = name
        self.done = False
        self.turn = 0
        self._ended: list[Callable[[], None]] = []

        def run(_: Any) -> None:
            try:
                body()
            finally:
                self.done = True
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
    """An event whose waiters are tasks; the time out is counted in the world's time."""

    def __init__(self, kernel: Kernel, rate: float = 1.0) -> None:
        self._kernel = kernel
        self._rate = rate
        self._flag = False
        self._waiters: list[SimTask] = []

    def set(self) -> None:
        self._flag = True
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
        task = self._kernel.current
        assert task is not None, "only a task of a node can wait"
        self._waiters.append(task)
        turn, timer = task.turn, None
        if timeout is not None:
            delay = max(timeout, 0.0) / self._rate
            timer = self._kernel.after(delay, lambda: task.process.resume(task, None, turn))
        try:
            self._kernel.pause_current()
        finally:
            self._waiters = [other for other in self._waiters if other is not task]
            if timer is not None:
                timer.cancel()
        return self._flag


class SimMutex(AbstractContextManager["SimMutex"]):
    """Nothing is preempted between switch points, so a mutex that is found taken was kept across one: a bug."""

    def __init__(self) -> None:
        self._taken = False

    def __enter__(self) -> SimMutex:
        if self._taken:
            raise AssertionError("a mutex of the engine was kept across a store call or a wait")
        self._taken = True
        return self

    def __exit__(self, *exc: object) -> None:
        self._taken = False
