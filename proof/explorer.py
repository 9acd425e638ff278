"""Explore *every* state that a model can reach, faults included, and prove two things of each.

Safety: no step breaks a rule of the model. Liveness: once the faults stop, a good end can still be reached, whatever
happened before. The report has the shortest counterexample.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["STUCK", "Report", "Searchable", "Wrong", "search"]

STUCK = "a slot will never be decided, or a hold never ends"


class Wrong(Exception):
    """A step broke a rule: which one, and which step."""


class Searchable(Protocol):
    """A model that can be searched: states, the steps between them, and which of them are a good end."""

    def start(self) -> Any: ...
    def key(self, state: Any) -> Any:
        """Return a key that is equal for states which are the same for every purpose."""

    def steps(self, state: Any) -> Iterator[tuple[object, bool, Any]]:
        """Yield each step that may happen, whether it needs no fault, and the state after it."""

    def without_idle(self, state: Any) -> Any:
        """Return the state without parts that cannot matter any more."""

    def done(self, state: Any) -> bool:
        """Whether it is a good end: from every state one must be reachable without further faults."""

    def over(self, state: Any) -> bool:
        """Whether nothing can go wrong after that end."""


@dataclass
class Report:
    """The result: how many states and steps, and the shortest way to the first thing that is wrong, if any is."""

    states: int = 0
    steps: int = 0
    wrong: str | None = None
    trace: list[str] = field(default_factory=list)


def search(world: Searchable, *, limit: int | None = None) -> Report:
    """Search all reachable states of a model breadth first, or the first `limit`, of which only safety is shown."""
    report = Report()
    start = world.start()
    first = world.key(start)
    came_from: dict[Any, tuple[Any, object]] = {first: (None, "")}
    without_fault: dict[Any, list[Any]] = {}
    """From a state to those from which a step that is no fault leads to it."""
    done: list[Any] = []
    queue = deque([(first, start)])
    while queue and (limit is None or report.states < limit):
        here, state = queue.popleft()
        report.states += 1
        if world.done(state):
            done.append(here)
            if world.over(state):
                continue
        try:
            for what, faultless, following in world.steps(state):
                report.steps += 1
                following = world.without_idle(following)
                there = world.key(following)
                if there not in came_from:
                    came_from[there] = (here, what)
                    queue.append((there, following))
                if faultless:
                    without_fault.setdefault(there, []).append(here)
        except Wrong as wrong:
            report.wrong, last = wrong.args
            report.trace = [*_trace(came_from, here), str(last)]
            return report
    if not queue:
        alive = _can_reach(done, without_fault)
        # In the order of discovery, so that the first is among the shortest.
        stuck = next((key for key in came_from if key not in alive), None)
        if stuck is not None:
            report.wrong, report.trace = STUCK, _trace(came_from, stuck)
    return report


def _can_reach(goals: list[Any], earlier: Mapping[Any, list[Any]]) -> set[Any]:
    """Return the states from which one of the goals can be reached."""
    found, queue = set(goals), deque(goals)
    while queue:
        for state in earlier.get(queue.popleft(), ()):
            if state not in found:
                found.add(state)
                queue.append(state)
    return found


def _trace(came_from: Mapping[Any, tuple[Any, object]], key: Any) -> list[str]:
    """Return the steps on the way to a state."""
    steps: list[str] = []
    while key is not None:
        key, what = came_from[key]
        if what:
            steps.append(str(what))
    return steps[::-1]
