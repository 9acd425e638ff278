"""Bugs of pauses of many jobs at once, beside the list."""

from __future__ import annotations

from typing import Any

from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Check, Worlds
from solocron.engine.namespace_gate import NamespaceGate
from solocron.engine.requirements import Requirements
from solocron.model._fast.values import replace
from solocron.model.documents.job import Job
from solocron.model.documents.scoped_pause import ScopedPause
from solocron.model.transitions import through_pauses
from solocron.stores.contract import Applied
from tests.unit.engine import test_claimer as claimer

__all__ = ["MUTANTS"]


def _p24(bites: Bites) -> Patches:
    real = NamespaceGate.for_claims

    def uncompared(self: NamespaceGate) -> Any:
        epoch, gate, pauses = real(self)
        bites(gate.pauses)
        return epoch, replace(gate, pauses=""), pauses

    return [(NamespaceGate, "for_claims", uncompared)]


def _p25(bites: Bites) -> Patches:
    real = through_pauses._skip

    def on_and_on(job: Job, slots: Any, records: Any, pause: ScopedPause, now: int) -> Job:
        bites(pause.until is not None and pause.until < now)
        return real(job, slots, records, replace(pause, until=None), now)

    return [(through_pauses, "_skip", on_and_on)]


def _p26(bites: Bites) -> Patches:
    real = Requirements.use

    def kept(self: Requirements, applied: Applied, equipped: Any, session: str) -> None:
        named = {result.name for result in applied.results}
        bites(len(named) < len(equipped))
        real(self, applied, {name: one for name, one in equipped.items() if name in named}, session)

    return [(Requirements, "use", kept)]


_PAUSED = {"pauses": 9.0, "jobs": 8.0}
_REFUSED = claimer.test_permits_of_a_claim_that_is_refused_at_the_gate_are_released

MUTANTS = [
    Mutant("P-24", "a claim's commit does not compare the pauses", "I27", _p24, Worlds(_PAUSED)),
    Mutant("P-25", "a pause that was lifted goes on skipping slots", "I27", _p25, Worlds(_PAUSED)),
    Mutant("P-26", "a claim that is refused at the gate keeps its permits", "I9", _p26, Check(_REFUSED, by="I9")),
]
