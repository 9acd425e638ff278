"""Explores *every* state that a small fleet can reach, faults included, and proves two things of each.

Safety: no step breaks a rule (one live claim, attempts in order, fences that grow, no stale write, a cursor that passes
nothing, no second body beside one that still runs). Liveness: once the faults stop, every slot can still be decided,
whatever happened before: no hold is left that nobody will ever end.

Times count from now and fences by rank, so that the states are finite in number although the clock never stops.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from solocron.simulator.small_rules import Wrong
from solocron.simulator.small_state import Faults, Rules, Small
from solocron.simulator.small_world import SmallWorld

__all__ = ["STUCK", "Faults", "Report", "Rules", "Small", "World", "explore", "search"]

STUCK = "a slot will never be decided, or a hold never ends"


class World(Protocol):
    """What can be searched: states, the steps between them, and which of them are a good end."""

    def start(self) -> Any: ...
    def key(self, state: Any) -> Any:
        """Equal for states that are the same for every purpose."""

    def steps(self, state: Any) -> Iterator[tuple[object, bool, Any]]:
        """What may happen, whether without a fault, and what comes of it."""

    def without_idle(self, state: Any) -> Any:
        """The state without what can make no difference any more."""

    def done(self, state: Any) -> bool:
        """Whether it is a good end: from every state one must be reachable without further faults."""

    def over(self, state: Any) -> bool:
        """Whether nothing can go wrong after that end."""


@dataclass
class Report:
    """What was found: how many states and steps, and the shortest way to the first thing that is wrong, if any is."""

    states: int = 0
    steps: int = 0
    wrong: str | None = None
    trace: list[str] = field(default_factory=list)


def explore(small: Small, *, limit: int | None = None) -> Report:
    """Breadth first through all reachable states, or the first `limit`, of which only safety is shown.

    The report has the shortest counterexample. Time grows steeply with the faults: two of them in one history are
    explored in seconds, all four around two slots are half a million states.
    """
    return search(SmallWorld(small), limit=limit)


def search(world: World, *, limit: int | None = None) -> Report:
    """Breadth first through all reachable states of a world, or the first `limit`."""
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
    """The states from which one of the goals can be reached."""
    found, queue = set(goals), deque(goals)
    while queue:
        for state in earlier.get(queue.popleft(), ()):
            if state not in found:
                found.add(state)
                queue.append(state)
    return found


def _trace(came_from: Mapping[Any, tuple[Any, object]], key: Any) -> list[str]:
    """What happened on the way to a state."""
    steps: list[str] = []
    while key is not None:
        key, what = came_from[key]
        if what:
            steps.append(str(what))
    return steps[::-1]
