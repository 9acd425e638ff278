"""Bugs of sessions (the rules of the lease protocol), and of the harness itself."""

from __future__ import annotations

import random
from dataclasses import replace
from math import inf
from typing import Any
from unittest.mock import patch

from proof.invariants.checker import Tests
from proof.mutants import checks
from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Campaign, Check, Histories, Worlds
from proof.simulator.nemesis import Nemesis
from proof.workloads import ledger
from solocron.engine.sweeper import Sweeper
from solocron.errors import StoreUnavailable
from solocron.lease import holder as holder_module
from solocron.lease import liveness as liveness_module
from solocron.lease.liveness import Liveness
from solocron.model.change import Absent, Change
from solocron.model.documents import session as session_model
from solocron.model.documents.job import Job
from solocron.model.documents.session import Life, Session
from solocron.model.transitions import catchup
from solocron.stores.contract import HeldBy
from solocron.stores.drafts import Draft
from solocron.stores.update import Update
from solocron.testing.simulation.database import Database
from solocron.testing.simulation.seams import SimRng
from tests.unit.effects.locks import test_sessions as locks
from tests.unit.engine import test_lease_protocol as protocol
from tests.unit.lease import test_liveness as liveness

__all__ = ["MUTANTS"]

FAR = 4_000_000_000_000_000


def _x50(bites: Bites) -> Patches:
    real = Sweeper.sessions

    def live_or_nothing(self: Sweeper) -> list[Session]:
        found = []
        for session in real(self):
            bites(session.state is Life.DEAD)
            dead = session.state is Life.DEAD
            found.append(replace(session, state=Life.LIVE, expires_at=FAR) if dead else session)
        return found

    return [(Sweeper, "sessions", live_or_nothing)]


def _x51(bites: Bites) -> Patches:
    real = Database.select

    def skip_locked(self: Database, client: str, which: Any, done: Any, *, lock: bool, **more: Any) -> None:
        if not isinstance(which, HeldBy) or not lock:
            real(self, client, which, done, lock=lock, **more)
            return
        keys = [key for key in self._keys(which) if key not in self._locks]
        bites(len(keys) < len(self._keys(which)))
        with patch.object(self, "_keys", lambda which: keys):
            real(self, client, which, done, lock=lock, **more)

    return [(Database, "select", skip_locked)]


def _x54(bites: Bites) -> Patches:
    known: dict[str, Session] = {}

    def upsert(doc: Session | Absent, *, now: int, **more: Any) -> Change | None:
        if isinstance(doc, Session):
            known[doc.name] = doc
            return session_model.renew(doc, now=now, **more)
        if doc.name not in known:
            return None
        bites()
        old = known[doc.name]
        return Change(replace(old, state=Life.LIVE, expires_at=now + old.lease, beats=old.beats + 1))

    return [(holder_module, "renew", upsert)]


def _x55(bites: Bites) -> Patches:
    real = Liveness._silent_until

    def what_the_store_says(self: Liveness, session: Session, *more: Any) -> float:
        boot = self._runtime.clock.boot()
        left = None if self._lease is None else self._lease.boot_of(session.expires_at)
        at = boot if left is None else max(left, boot)
        bites(at < real(self, session, *more))
        return at

    return [(Liveness, "_silent_until", what_the_store_says)]


def _l03(bites: Bites) -> Patches:
    real = Liveness._is_watched

    def never(self: Liveness, *args: Any) -> bool:
        bites(real(self, *args))
        return False

    return [(Liveness, "_is_watched", never)]


def _l05(bites: Bites) -> Patches:
    real = Liveness._is_watched

    def but_for_its_own(self: Liveness, session: Session, now: int, under: Any) -> bool:
        own = under is None and session.node == self.by
        bites(own)
        return not own and real(self, session, now, under)

    return [(Liveness, "_is_watched", but_for_its_own)]


def _l04(bites: Bites) -> Patches:
    def as_it_was_seen(
        doc: Session | Absent, *, now: int, reason: str, seen: int, by: str | None = None
    ) -> Change | None:
        bites(isinstance(doc, Session) and doc.beats != seen)
        return session_model.bury(doc, now=now, reason=reason, by=by)

    return [(liveness_module, "bury", as_it_was_seen)]


def _x57(bites: Bites) -> Patches:
    real = catchup._replace

    def removes_the_hold(job: Job, *args: Any) -> Job:
        bites(job.active)
        return replace(real(job, *args), active=())

    return [(catchup, "_replace", removes_the_hold)]


def _x60(bites: Bites) -> Patches:
    real = Update._drafts

    def all_or_nothing(self: Update, *args: Any) -> list[Draft]:
        drafts = real(self, *args)
        if any(draft.error is not None for draft in drafts):
            bites()
            raise StoreUnavailable("the batch was refused")
        return drafts

    return [(Update, "_drafts", all_or_nothing)]


def _x91(bites: Bites) -> Patches:
    real = Liveness._renewed_at

    def whichever(self: Liveness) -> float:
        bites(real(self) < self._runtime.clock.boot())
        return inf

    return [(Liveness, "_renewed_at", whichever)]


# --- the harness -----------------------------------------------------------------------------------------------------


def _x41(bites: Bites) -> Patches:
    own = random.Random()

    def unseeded(self: SimRng, low: float, high: float) -> float:
        bites()
        return own.uniform(low, high)

    return [(SimRng, "uniform", unseeded)]


def _x46(bites: Bites) -> Patches:
    real = Tests.__init__

    def without_one(self: Tests, table: Any, disabled: frozenset[str]) -> None:
        bites("i4_no_stale_write" in table)
        real(self, {name: test for name, test in table.items() if name != "i4_no_stale_write"}, disabled)

    return [(Tests, "__init__", without_one)]


def _x47(bites: Bites) -> Patches:
    def never(self: Nemesis, *, suspend: bool = False) -> bool:
        bites()
        return False

    return [(Nemesis, "freeze", never)]


def _x48(bites: Bites) -> Patches:
    real = ledger._writer

    def behind_its_back(world: Any, *args: Any, **more: Any) -> Any:
        line = real(world, *args, **more)

        def told(what: str) -> None:
            bites()
            world.kernel.after(0.0, line, what)

        return told

    return [(ledger, "_writer", behind_its_back)]


MUTANTS = [
    Mutant(
        "X-50",
        "no swept state: a sweeper that dies half-way leaves holds behind",
        "I5",
        _x50,
        Check(protocol.test_rule_2_a_sweeper_that_dies_between_burying_and_taking_over_leaves_no_hold_behind, by="I5"),
    ),
    Mutant(
        "X-51",
        "a sweep skips locked rows",
        "I5",
        _x51,
        Worlds({"locking": 1, "kill": 8, "slow": 0.2, "jobs": 10, "request": 2}, hours=0.1),
    ),
    Mutant(
        "X-54",
        "an upsert revives a session that was pruned",
        "I4",
        _x54,
        Worlds({"freeze": 8, "keep": 3}, hours=0.1),
    ),
    Mutant("X-55", "burial by the store's clock alone", "I1", _x55, Worlds({"clock_step": 10})),
    Mutant(
        "L-01",
        "the same, by a process that waits for a lock",
        "I1",
        _x55,
        Check(locks.test_rule_5_a_step_of_the_stores_clock_costs_nobody_a_lock_that_is_tied_to_a_session, by="I1"),
    ),
    Mutant("L-02", "the same, by doctor --repair", "I1", _x55, Check(checks.a_repair_watches_for_a_lease, by="I1")),
    Mutant(
        "L-03",
        "a tick buries although a node watches",
        "I1",
        _l03,
        Check(checks.a_tick_leaves_burying_to_a_node_that_watches, by="I1"),
    ),
    Mutant(
        "L-04",
        "a burial does not look at renewals since",
        "I1",
        _l04,
        Check(checks.a_repair_leaves_a_session_that_renews_alone, by="I1"),
    ),
    Mutant(
        "L-05",
        "a process that looks once buries its own session",
        "I1",
        _l05,
        Check(
            liveness.test_a_process_that_looks_once_does_not_bury_its_own_session_after_a_leap, (("default",),), by="I1"
        ),
    ),
    Mutant("X-57", "replace removes the hold instead of marking it", "I9", _x57, Worlds({})),
    Mutant("X-60", "one bad document refuses the whole batch", "I19", _x60, Worlds({"poison": 1})),
    Mutant(
        "X-91",
        "a burial rests on a renewal from before the other lease had ended",
        "I1",
        _x91,
        Check(liveness.test_a_burial_rests_on_a_renewal_that_was_sent_after_the_other_lease_had_ended, by="I1"),
    ),
    Mutant("X-41", "jitter from dice of its own", "determinism", _x41, Histories()),
    Mutant(
        "X-46",
        "the checker leaves one invariant out",
        "harness",
        _x46,
        Campaign({"keep": 60, "request": 5}),
    ),
    Mutant(
        "X-47",
        "a fault that silently never strikes",
        "harness",
        _x47,
        Campaign({"keep": 60, "freeze": 20}),
    ),
    Mutant("X-48", "the ledger is not written by the bodies", "harness", _x48, Worlds({})),
]
