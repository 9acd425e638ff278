"""What the bodies saw, written by them and never by the engine; and how bodies of a simulated world behave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from solocron.simulator.kernel import Process, SimEvent

if TYPE_CHECKING:
    from solocron.simulator.world import World

__all__ = ["Ledger", "Line", "make_body"]


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that a body did."""

    at: float
    store: int
    what: str  # "start", "work" or "end"
    job: str
    run: str
    slot: int
    attempt: int
    fence: int
    process: Process
    stoppable: bool


class Ledger:
    """Lines in the order in which they happened."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.on_line: list[Callable[[Line], None]] = []

    def write(self, line: Line) -> None:
        self.lines.append(line)
        for observer in self.on_line:
            observer(line)


def make_body(world: World, process: Process, *, longest: float, stoppable: bool) -> Callable[[Any], Any]:
    """A function like those of users: short, long, failing, or deaf to being asked to stop."""
    dice = world.kernel.dice

    def body(run: Any) -> Any:
        kind = "calm" if world.calm else dice.choices(("short", "long", "raises", "deaf"), (5, 2, 1, 2))[0]

        def line(what: str) -> None:
            world.ledger.write(
                Line(
                    world.kernel.now,
                    world.database.clock(),
                    what,
                    run.job,
                    run.id,
                    round(run.slot.timestamp() * 1e6),
                    run.attempt,
                    run.fence,
                    process,
                    stoppable,
                )
            )

        line("start")
        left = {"calm": 0.0, "short": dice.uniform(0, 0.5), "raises": dice.uniform(0, 1)}.get(
            kind, dice.uniform(0, longest)
        )
        pause = SimEvent(world.kernel)
        while left > 0 and not world.calm:
            part = min(left, dice.uniform(0.1, 1.0))
            pause.wait(part)
            left -= part
            line("work")
            if kind != "deaf":
                run.check()
        if kind == "raises":
            raise ValueError("this body fails")
        line("end")
        return {"done": run.attempt}

    async def coroutine(run: Any) -> Any:
        return body(run)

    return coroutine if stoppable else body
