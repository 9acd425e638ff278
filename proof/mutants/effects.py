"""Bugs of steps and of guards: what is to happen once must not happen twice, nor lock out who is in the right."""

from __future__ import annotations

from typing import Any

from proof.mutants import checks
from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Check, Worlds
from solocron.effects.steps import Steps
from solocron.model.change import Change, SmallDocument
from solocron.model.documents import steps as steps_model
from solocron.runs import making
from solocron.runs.base import BaseRun
from solocron.stores.ward import Ward

__all__ = ["MUTANTS"]


def _x25(bites: Bites) -> Patches:
    real = steps_model.save

    def under_any_fence(doc: Any, *, fence: int, **more: Any) -> Change | None:
        if isinstance(doc, SmallDocument):
            bites(doc.body["fence"] != fence)
            fence = doc.body["fence"]
        return real(doc, fence=fence, **more)

    return [(steps_model, "save", under_any_fence)]


def _x26(bites: Bites) -> Patches:
    real = Steps.find

    def never_there(self: Steps, name: str) -> None:
        bites(real(self, name) is not None)

    return [(Steps, "find", never_there)]


def _x56(bites: Bites) -> Patches:
    real = making.make_effects

    def the_job(verbs: making.MakeVerbs, session: str, scope: str, ward: Ward | None, run: BaseRun) -> Any:
        bites(scope != run.job)
        return real(verbs, session, run.job, ward, run)

    return [(making, "make_effects", the_job)]


MUTANTS = [
    Mutant(
        "X-25",
        "a step's result is committed without its fence",
        "I17",
        _x25,
        Worlds({"effects": 3, "jobs": 1, "freeze": 5}, hours=0.1),
    ),
    Mutant(
        "X-26",
        "a step is carried out again though it is committed",
        "I17",
        _x26,
        Worlds({"effects": 3, "jobs": 1, "kill": 8}),
    ),
    Mutant(
        "X-56",
        "guards are compared per job with allow(n)",
        "I19",
        _x56,
        Check(checks.runs_that_may_run_at_once_do_not_lock_each_other_out, by="I19"),
    ),
]
