"""A bug of applications that share a store."""

from __future__ import annotations

from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Check
from solocron.model.applications import is_anothers
from solocron.model.documents.definition import Definition
from solocron.model.transitions import claiming
from tests.unit.model import test_applications

__all__ = ["MUTANTS"]


def _x89(bites: Bites) -> Patches:
    def anybodys(definition: Definition, ours: str | None) -> bool:
        bites(is_anothers(definition, ours))
        return False

    return [(claiming, "is_anothers", anybodys)]


MUTANTS = [
    Mutant(
        "X-89", "handler's origin not compared", "I26", _x89,
        Check(test_applications.test_a_claim_passes_over_a_job_of_another_application, by="I26"),
    ),
]  # fmt: skip
