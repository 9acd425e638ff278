"""Bugs of what nodes do when the store goes back: each leaves out one rule of docs/explanation/going-back.md."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solocron.engine import recovery as recovery_module
from solocron.engine.keeper import Keeper
from solocron.engine.recovery import Recovery
from solocron.model.change import Change
from solocron.model.documents.job import Hold, Job
from solocron.model.transitions import claiming
from solocron.simulator.database import Database
from solocron.stores.contract import Gate
from tests.mutants.mutant import Bites, Mutant, Patches
from tests.mutants.suites import Worlds

__all__ = ["MUTANTS"]


def _g01(bites: Bites) -> Patches:
    real = Database._is_open

    def any_server(self: Database, session: str, gate: Gate) -> bool:
        if real(self, session, gate):
            return True
        own = self.docs[("session", session)][0]  # type: ignore[index]
        found = self._gate().rpartition(" ")[0] in gate.words and own.beats >= gate.beats  # type: ignore[union-attr]
        bites(found)
        return found

    return [(Database, "_is_open", any_server)]


def _g02(bites: Bites) -> Patches:
    real = Database._is_open

    def any_age(self: Database, session: str, gate: Gate) -> bool:
        found = real(self, session, replace(gate, beats=0))
        bites(found and not real(self, session, gate))
        return found

    return [(Database, "_is_open", any_age)]


def _g03(bites: Bites) -> Patches:
    def nothing(self: Recovery, *_: Any) -> None:
        bites()

    return [(Recovery, "_put_back", nothing)]


def _g04(bites: Bites) -> Patches:
    real = recovery_module.all_marked

    def nobody_waits(sessions: Any, epoch: str) -> bool:
        bites(not real(sessions, epoch))
        return True

    return [(recovery_module, "all_marked", nobody_waits)]


def _g12(bites: Bites) -> Patches:
    def silent(job: Job, slots: Any, *, now: int) -> tuple[Job, tuple[Any, ...]]:
        bites(job.back is not None)
        return replace(job, back=None), ()

    return [(claiming, "write_off_untold", silent)]


def _x82(bites: Bites) -> Patches:
    real = Keeper._can_be_new

    def anything(self: Keeper, hold: Hold) -> bool:
        bites(not real(self, hold))
        return True

    return [(Keeper, "_can_be_new", anything)]


def _g14(bites: Bites) -> Patches:
    real = Recovery.begun

    def at_once(self: Recovery, session: str, asked: float) -> None:
        real(self, session, asked)
        bites(self._from)
        self._from = 0.0

    return [(Recovery, "begun", at_once)]


def _g15(bites: Bites) -> Patches:
    real = recovery_module.write_off

    def left(*args: Any, **more: Any) -> Change | None:
        bites(real(*args, **more))
        return None

    return [(recovery_module, "write_off", left)]


FAILOVER = {"failover": 6.0, "jobs": 25}
RESTORE = {"restore": 20.0}
LOSSES = {"failover": 8.0, "kill": 6.0, "freeze": 10.0, "jobs": 15}

MUTANTS = [
    Mutant("G-01", "a claim is granted whichever server answers", "I22", _g01, Worlds(FAILOVER), quick=False),
    Mutant("G-02", "a claim is granted to a session that went back", "I22", _g02, Worlds(RESTORE), quick=False),
    Mutant("G-03", "nobody puts back what it remembers", "I22", _g03, Worlds(FAILOVER), quick=False),
    Mutant("G-04", "claims are granted before every node has checked", "I22", _g04, Worlds(LOSSES), quick=False),
    Mutant("G-12", "slots that lost claims had passed leave no record", "I22", _g12, Worlds(LOSSES), quick=False),
    Mutant("G-14", "a node that begins claims at once", "I22", _g14,
           Worlds(RESTORE | {"kill": 10.0}), quick=False),
    Mutant("G-15", "what a node that is gone may have started is left as it is", "I22", _g15,
           Worlds(LOSSES), quick=False),
    Mutant("X-82", "a hold of an earlier time is adopted", "I22", _x82, Worlds(RESTORE), quick=False),
]  # fmt: skip
