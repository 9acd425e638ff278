"""Explore a small fleet whose store goes back, completely or by random walks.

Safety: no (run, attempt) starts twice within the promise. Liveness: once the faults stop, the namespace opens and every
slot gets its record, or the namespace is closed and waits for a person.
"""

from __future__ import annotations

from random import Random

from proof.explorer import STUCK, Report, Wrong, search
from proof.going_back.state import Faults, GoingBack, Rules
from proof.going_back.world import SPENT, GoingBackWorld

__all__ = ["Faults", "GoingBack", "Rules", "explore", "walk"]

FAULTY = 0.15
"""Probability of a step from all steps, and not only from those that need no fault."""
PATIENCE = 400
"""Steps without a fault after which a walk that has not come to rest never will."""


def explore(small: GoingBack, *, limit: int | None = None) -> Report:
    """Breadth first through all reachable states, or the first `limit`, of which only safety is shown."""
    report = search(GoingBackWorld(small), limit=limit)
    report.trace = [*small.given, *report.trace] if report.wrong else []
    return report


def walk(small: GoingBack, *, seed: int, steps: int = 80) -> Report:
    """One random history: so many steps with faults, then without any until it has come to rest."""
    world, rng, report = GoingBackWorld(small), Random(seed), Report()
    state = world.start()
    try:
        while report.steps < steps + PATIENCE:
            if report.steps == steps:
                state = state._replace(left=SPENT, behind=None, floating=())
            if report.steps >= steps and world.over(state):
                return report
            following = list(world.steps(state))
            # Faults are the greater part of what may happen: chosen evenly, all would strike in the first few beats.
            well = [step for step in following if step[1]]
            what, _, state = rng.choice(following if rng.random() < FAULTY or not well else well)
            report.steps += 1
            report.trace.append(str(what))
        report.wrong = STUCK
    except Wrong as wrong:
        report.wrong = wrong.args[0]
        report.trace.append(str(wrong.args[1]))
    return report
