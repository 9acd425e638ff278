"""The ledger, written by the bodies and never by the engine; and the bodies of a simulated world."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from solocron.testing.simulation.kernel import Kernel, Process, SimEvent

if TYPE_CHECKING:
    from proof.simulator.world import World

__all__ = ["RUN_NOW", "Ledger", "Line", "make_asked", "make_body", "make_poison"]

RUN_NOW = " run now"
"""How the name of a task ends that carries out a body itself, whatever the run is called."""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that a body did."""

    at: float
    store: int
    what: str  # "start", "work", "checked" (the engine said: go on), "end", or what on_retry answered
    job: str
    run: str
    slot: int
    attempt: int
    fence: int
    key: str
    process: Process
    stoppable: bool


class Ledger:
    """Lines in the order in which they happened; only the body of a run can write about it."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.lines: deque[Line] = deque(maxlen=200)
        """The last of them."""
        self.starts = 0
        self.on_line: list[Callable[[Line], None]] = []
        self._hash = hashlib.blake2b(digest_size=16)

    def write(self, line: Line) -> None:
        task = self._kernel.current
        if task is None or task.process is not line.process or not task.name.endswith((line.run, RUN_NOW)):
            raise AssertionError(f"the ledger is the bodies' own: {task and task.name} wrote about {line.run}")
        self.lines.append(line)
        self.starts += line.what == "start"
        self._hash.update(f"{line.at:.6f} {line.what} {line.run} {line.fence} {line.process.name}\n".encode())
        for observer in self.on_line:
            observer(line)

    def digest(self) -> str:
        return self._hash.hexdigest()


def _writer(world: World, process: Process, run: Any, *, stoppable: bool) -> Callable[[str], None]:
    slot = round(run.slot.timestamp() * 1e6)

    def line(what: str) -> None:
        now = world.kernel.now
        written = Line(
            now, world.database.clock(), what, run.job, run.id, slot, run.attempt, run.fence, run.key, process,
            stoppable,
        )  # fmt: skip
        # A body would swallow what the checker raises under it.
        world.guarded(lambda: world.ledger.write(written))

    return line


def make_body(world: World, process: Process, *, longest: float, stoppable: bool) -> Callable[[Any], Any]:
    """A function like those of users: short, long, failing, telling its progress, or deaf to being asked to stop."""
    dice = world.kernel.dice

    def body(run: Any) -> Any:
        kinds = ("short", "long", "raises", "deaf", "tells")
        kind = "calm" if world.calm else dice.choices(kinds, (5, 2, 1, 2, 2))[0]
        line = _writer(world, process, run, stoppable=stoppable)
        line("start")
        left = {"calm": 0.0, "short": dice.uniform(0, 0.5), "raises": dice.uniform(0, 1)}.get(
            kind, dice.uniform(0, longest)
        )
        pause = SimEvent(world.kernel)
        while left > 0 and not world.calm:
            part = min(left, dice.uniform(0.02, 0.2) * world.options.lease)
            pause.wait(part)
            left -= part
            line("work")
            if kind != "deaf":
                run.check()
                line("checked")
            if kind == "tells":
                run.progress(longest - left, longest)
        if kind == "raises":
            raise ValueError("this body fails")
        line("end")
        return {"done": run.attempt}

    async def coroutine(run: Any) -> Any:
        return body(run)

    return coroutine if stoppable else body


def make_asked(world: World, process: Process) -> Callable[[Any], Any]:
    """An `on_retry` like those of users: it takes a while, knows the answer or not, or fails."""
    dice = world.kernel.dice

    def asked(run: Any) -> str:
        SimEvent(world.kernel).wait(dice.uniform(0, 0.2) * world.options.lease)
        answers = ("repeat", "done", "give up", "raise")
        answer = "repeat" if world.calm else dice.choices(answers, (6, 2, 1, 1))[0]
        _writer(world, process, run, stoppable=False)(f"answered {answer}")
        if answer == "raise":
            raise ConnectionError("no way to tell")
        return answer

    return asked


class Unspeakable(Exception):
    """An error that cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words for it")

    __repr__ = __str__


def make_poison(world: World, process: Process) -> Callable[[Any], Any]:
    """A function that does to the engine whatever a function can do."""
    dice = world.kernel.dice

    def poison(run: Any) -> Any:
        line = _writer(world, process, run, stoppable=False)
        line("start")
        kind = dice.randrange(6)
        if kind == 0:
            raise Unspeakable
        if kind == 1:
            raise SystemExit(3)
        if kind == 2:
            raise ValueError("\udcff\0" * 20_000)
        if kind == 3:
            run.progress(object(), note=object())
        line("end")
        return object() if kind == 4 else "x" * 200_000

    return poison
