"""A store that is away for less than a lease, at the default lease: who holds a session must not sleep on after it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from proof.chaos.figures import Figures
from proof.chaos.places import Place
from proof.chaos.storm import Tell
from solocron.clock import SystemClock
from solocron.testing.fleet import Fleet, wait_until
from solocron.testing.fleet.ledger import START

__all__ = ["AWAY", "OUTAGE", "outage", "starts_since"]

OUTAGE = "F27"
LEASE = 15.0
BOUND = LEASE / 3 + 1.0
"""A beat and a second."""
BARRIER = 2 * LEASE / 3
"""How long nodes check what they remember where another server answers, which a restarted Redis is."""
AWAY = (0.4, 0.55, 0.7, 0.9)
"""Shares of a lease."""


def outage(place: Place, folder: Path, *, tell: Tell, away: Sequence[float] = AWAY) -> Figures:
    """Two nodes, the store away for each of these; from its return to the first start a beat and a second may pass."""
    figures = Figures(store=place.name, scenario="outage", seconds=sum(away) * LEASE)
    boot = SystemClock().boot
    bound = BOUND + BARRIER if place.name in ("redis", "valkey") else BOUND
    with Fleet(["proof.chaos.jobs.beside"], store=place.url, folder=folder, lease=LEASE) as fleet:
        fleet.start(2)
        for share in away:
            peace = boot()
            wait_until(lambda: starts_since(fleet, peace) > 8, within=60, what="starts in peace")  # noqa: B023
            with place.away():
                gone = boot()
                threading.Event().wait(share * LEASE)
                quiet = not starts_since(fleet, gone + 1.0)
            back = boot()
            wait_until(lambda: starts_since(fleet, back), within=120, what="a start after the store's return")  # noqa: B023
            took = min(line.at for line in fleet.ledger.lines(event=START) if line.at > back) - back
            figures.takeovers.append(took)
            figures.notes.append(f"away for {share:g} leases: first start {took:.1f} s after its return")
            tell(f"        {figures.notes[-1]}")
            figures.struck[OUTAGE] = figures.struck.get(OUTAGE, 0) + quiet
            if took > bound:
                figures.faults.append(f"I23: {figures.notes[-1]}, and {bound:g} s are the bound")
    figures.note_strikes(figures.struck)
    return figures


def starts_since(fleet: Fleet, since: float) -> int:
    """Return how many bodies have started since then."""
    return sum(line.at > since for line in fleet.ledger.lines(event=START))
