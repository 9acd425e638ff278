"""Bugs of what a holder does: renewing, stopping, draining, recording, adopting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from proof.mutants import checks
from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Check, Worlds
from solocron.dispatch.contract import Stop
from solocron.engine import claim_pass as claim_pass_module
from solocron.engine import execution
from solocron.engine.attempts import Attempts, Running
from solocron.engine.claim_pass import ClaimPass
from solocron.engine.finisher import Finisher
from solocron.engine.keeper import Keeper
from solocron.engine.node import Node
from solocron.engine.runner import Runner
from solocron.lease.holder import Holder
from solocron.loop import Loop
from solocron.model.change import Absent, Change
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Record, Status
from solocron.model.documents.session import Session
from solocron.model.transitions import claiming, finishing
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.finishing import Outcome
from solocron.stores.contract import Applied, Verdict
from solocron.testing.simulation.database import Database
from solocron.testing.simulation.seams import SimRng
from tests.unit.engine import test_draining
from tests.unit.engine import test_lease_protocol as protocol
from tests.unit.face import test_carried_out

__all__ = ["MUTANTS"]


def _x09(bites: Bites) -> Patches:
    def never_mind(self: Keeper, error: str) -> bool:
        lease = self._attempts.lease
        bites()
        return lease.session is not None and lease.renewed(lease.session, lease.boot())

    return [(Keeper, "_trouble", never_mind)]


def _x19(bites: Bites) -> Patches:
    real = Runner.stop

    def carry_on(self: Runner, running: Running, stop: Stop) -> None:
        if stop.kind == "lost":
            bites()
        else:
            real(self, running, stop)

    return [(Runner, "stop", carry_on)]


def _x33(bites: Bites) -> Patches:
    def as_in_the_parent(self: SimRng) -> str:
        bites()
        self.given = getattr(self, "given", 0) + 1  # type: ignore[attr-defined]
        return f"{self.given:032x}"  # type: ignore[attr-defined]

    return [(SimRng, "token", as_in_the_parent)]


def _x38(bites: Bites) -> Patches:
    real = Holder.begin

    def host_and_pid(self: Holder, described: Session) -> tuple[str, int]:
        bites()
        name = described.node.partition(".")[0]
        with patch.object(self._runtime.rng, "token", lambda: name):
            return real(self, described)

    return [(Holder, "begin", host_and_pid)]


def _x37(bites: Bites) -> Patches:
    def at_once(self: Node, grace: float) -> bool:
        bites(self.attempts.bodies())
        self.attempts.draining = True
        for loop in self._loops.values():
            loop.stop()
        return True

    return [(Node, "drain", at_once)]


def _x39(bites: Bites) -> Patches:
    real_start = Runner.start

    def start(self: Runner, job: Job, hold: Hold, session: str) -> bool:
        if job.name.startswith("poison"):
            raise RuntimeError("this job cannot be started")
        return real_start(self, job, hold, session)

    def dies(self: Loop) -> None:
        while not self._stopping:
            self._signal.clear()
            now = self._runtime.clock.boot()
            try:
                at = self._step(now)
            except Exception:
                bites()
                return
            self._signal.wait(max(at - self._runtime.clock.boot(), 0.001))

    return [(Runner, "start", start), (Loop, "_run", dies)]


def _x35(bites: Bites) -> Patches:
    real = Finisher.step

    def given_up(self: Finisher, now: float) -> float:
        context, store = self._context, self._context.store

        class Shim:
            def update(self, *args: Any, **more: Any) -> Applied:
                applied = store.update(*args, **more)
                bites(any(result.verdict is Verdict.CONTENDED for result in applied.results))
                results = [
                    replace(result, verdict=Verdict.DECLINED) if result.verdict is Verdict.CONTENDED else result
                    for result in applied.results
                ]
                return replace(applied, results=tuple(results))

        with patch.object(self, "_context", replace(context, store=Shim())):
            return real(self, now)

    return [(Finisher, "step", given_up)]


def _x45(bites: Bites) -> Patches:
    real = ClaimPass._change

    def by_my_own_clock(self: ClaimPass, doc: Job | Absent, now: int, by: Claimant) -> Change | None:
        wall = self._context.runtime.clock.wall()
        bites(wall != now)
        return real(self, doc, wall, by)

    real_due = Database._due

    def everything(self: Database, which: Any, *, lock: bool) -> Any:
        with patch.object(self, "clock", lambda: 4_000_000_000_000_000):
            return real_due(self, which, lock=lock)

    return [(ClaimPass, "_change", by_my_own_clock), (Database, "_due", everything)]


def _x49(bites: Bites) -> Patches:
    real = Database._is_live

    def whoever_claims_claims(self: Database, session: str) -> bool:
        bites(not real(self, session))
        return True

    return [(Database, "_is_live", whoever_claims_claims)]


def _x52(bites: Bites) -> Patches:
    real = Attempts.unknown
    looked: set[tuple[int, str | None]] = set()

    def once_only(self: Attempts, holds: Any) -> Any:
        found = real(self, holds)
        key = (id(self), self.lease.session)
        if key in looked:
            bites(found)
            return []
        looked.add(key)
        return found

    return [(Attempts, "unknown", once_only)]


def _x58(bites: Bites) -> Patches:
    real = claiming.claim

    def for_everybody(doc: Any, *, now: int, by: Claimant, resolve: Any) -> Change | None:
        records: tuple[Record, ...] = ()
        for hold in doc.active if isinstance(doc, Job) else ():
            if hold.deadline is not None and hold.deadline <= now:
                bites(hold.session != by.session)
                doc, (record,) = finishing.end_hold(doc, hold, Outcome(status=Status.TIMED_OUT), now=now)
                records += (record,)
        change = real(doc, now=now, by=by, resolve=resolve)
        if not records:
            return change
        return Change(doc, records) if change is None else replace(change, records=(*records, *change.records))

    return [(claim_pass_module, "claim", for_everybody)]


def _x59(bites: Bites) -> Patches:
    real = Attempts.revoke

    def begun_or_not(self: Attempts, running: Running) -> bool:
        begun = not real(self, running)
        bites(begun and self.draining)
        return not begun or self.draining

    return [(Attempts, "revoke", begun_or_not)]


class _NeverDraining:
    """The attempts of a node that does not know that it shuts down."""

    draining = False

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._attempts, name)


def _x61(bites: Bites) -> Patches:
    real = Runner.__init__

    def make(self: Runner, *args: Any, **more: Any) -> None:
        real(self, *args, **more)
        self.attempts = _NeverDraining(self.attempts)  # type: ignore[assignment]

    def leave(self: Attempts) -> tuple[bool, str | None]:
        busy = bool(self._running or self._leftovers)
        bites(not busy and self.lease.session is not None)
        return not busy, None if busy else self.lease.session

    return [(Runner, "__init__", make), (Attempts, "leave", leave)]


def _x88(bites: Bites) -> Patches:
    real = execution.unfinished

    def whatever_it_is(value: Any) -> None:
        bites(real(value) is not None)

    return [(execution, "unfinished", whatever_it_is)]


MUTANTS = [
    Mutant("X-09", "an error of a renewal is ignored", "I8", _x09, Worlds({"partition": 10})),
    Mutant("X-19", "bodies are not cancelled when the lease is lost", "I8", _x19, Worlds({"partition": 10})),
    Mutant("X-33", "a fork shares the holder's id", "I1", _x33, Worlds({})),
    Mutant(
        "X-37",
        "SIGTERM drops running bodies without release",
        "I21",
        _x37,
        Check(protocol.test_rule_9_drain_waits_for_what_runs_and_ends_the_session_last, by="I21"),
    ),
    Mutant("X-38", "a holder's id is used again after a restart", "I4", _x38, Worlds({"kill": 15})),
    Mutant("X-39", "an exception in one job stops the loop", "I19", _x39, Worlds({"poison": 3})),
    Mutant("X-35", "a serialization failure is taken for a lost claim", "I5", _x35, Worlds({"serialization": 0.2})),
    Mutant("X-45", "a node's own clock decides what is due", "I15", _x45, Worlds({"clock_skew": 3600})),
    Mutant(
        "X-49",
        "the session is not tested in the claim's commit",
        "I5",
        _x49,
        Check(checks.a_claim_of_a_buried_session_is_refused),
    ),
    Mutant("X-52", "what was claimed unheard is adopted once only", "I14", _x52, Worlds({"lost_reply": 0.1})),
    Mutant("X-58", "another node ends a timed-out run", "I1", _x58, Worlds({"jobs": 12})),
    Mutant("X-59", "drain hands back what has started", "I2", _x59, Worlds({"drain": 10})),
    Mutant(
        "X-61",
        "an answer that comes after the session is closed starts a body",
        "I21",
        _x61,
        Check(test_draining.test_a_claim_that_is_answered_after_the_session_is_closed_starts_nothing, by="I21"),
    ),
    Mutant(
        "X-88",
        "a coroutine that was returned counts as success",
        "I25",
        _x88,
        Check(test_carried_out.test_the_same_holds_on_a_simulated_cluster, by="I25"),
    ),
]
