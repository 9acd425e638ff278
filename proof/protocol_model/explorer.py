"""Explore every state that a small fleet can reach under the lease protocol, faults included.

Safety: no step breaks a rule (one live claim, attempts in order, fences that grow, no stale write, a cursor that passes
nothing, no second body beside one that still runs). Liveness: once the faults stop, every slot can still be decided,
and every hold can still be ended.

Times count from now and fences by rank, so that the states are finite in number although the clock never stops.
"""

from __future__ import annotations

from proof.explorer import Report, search
from proof.protocol_model.state import Faults, Rules, Small
from proof.protocol_model.world import SmallWorld

__all__ = ["Faults", "Rules", "Small", "explore"]


def explore(small: Small, *, limit: int | None = None) -> Report:
    """Search all reachable states breadth first, or the first `limit`, of which only safety is shown.

    The report has the shortest counterexample. Time grows steeply with the faults: two of them in one history are
    explored in seconds, all four around two slots are half a million states.
    """
    return search(SmallWorld(small), limit=limit)
