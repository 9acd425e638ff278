"""Bugs of shards, limits and routing, beside the list: the simulator's own checks of them must be able to fail."""

from __future__ import annotations

from typing import Any

from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Worlds
from solocron.model._fast.values import replace
from solocron.model.documents import permit
from solocron.model.documents.job import WaitingRun
from solocron.model.transitions import claiming

__all__ = ["MUTANTS"]


def _p1(bites: Bites) -> Patches:
    real = claiming.rest_of

    def one_too_few(waiting_run: WaitingRun) -> WaitingRun | None:
        rest = real(waiting_run)
        if rest is None or not rest.more:
            return rest
        bites()
        return replace(rest, more=rest.more - 1)

    return [(claiming, "rest_of", one_too_few)]


def _p2(bites: Bites) -> Patches:
    real = permit.free

    def always(doc: Any) -> bool:
        bites(not real(doc))
        return True

    return [(permit, "free", always)]


def _p3(bites: Bites) -> Patches:
    real = claiming._turn

    def anybodys(job: Any, waiting_run: WaitingRun, by: Any, now: int) -> int:
        bites(waiting_run.only not in (None, by.node))
        return real(job, replace(waiting_run, only=None), by, now)

    return [(claiming, "_turn", anybodys)]


MUTANTS = [
    Mutant("P-01", "a row of shards loses its last", "I5", _p1, Worlds({"jobs": 10})),
    Mutant("P-02", "a permit is taken from the session that has it", "I9", _p2, Worlds({"jobs": 12})),
    Mutant("P-03", "a part is claimed by any node", "I1", _p3, Worlds({"jobs": 10})),
]
