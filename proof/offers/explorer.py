"""Explore every state that a small fleet with a broker can reach, faults included.

Safety: no attempt's body starts twice, no two bodies of a run beside each other under leases that are trusted, no run
ends that no worker had picked up, no message starts what no node had handed over. Liveness: from every state an end can
still be reached once the faults stop.
"""

from __future__ import annotations

from proof.explorer import Report, search
from proof.offers.state import Faults, Offers, Rules
from proof.offers.world import OffersWorld

__all__ = ["Faults", "Offers", "Rules", "explore"]


def explore(offers: Offers, *, limit: int | None = None) -> Report:
    """Search all reachable states breadth first, or the first `limit`, of which only safety is shown."""
    return search(OffersWorld(offers), limit=limit)
