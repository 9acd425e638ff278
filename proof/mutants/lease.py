"""Bugs of leases: who may renew, until when a renewal counts, by which clock, and how long to wait."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from proof.mutants import checks
from proof.mutants.mutant import Bites, Mutant, Patches
from proof.mutants.suites import Check, Worlds
from solocron.engine import takeover as takeover_module
from solocron.engine.keeper import Keeper
from solocron.engine.settings import Settings
from solocron.errors import StoreError
from solocron.lease import holder as holder_module
from solocron.lease.liveness import Liveness, _Watched
from solocron.lease.own import OwnLease
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents import session as session_model
from solocron.model.documents.job import Job
from solocron.model.documents.session import Life, Session
from solocron.model.policy import Backoff
from solocron.model.transitions.finishing import take_over
from solocron.stores.contract import All, Named
from solocron.testing.simulation.seams import SimClock
from tests.unit.engine import test_lease_protocol as protocol

__all__ = ["MUTANTS"]


def _x01(bites: Bites) -> Patches:
    def everybodys(doc: Any, *, session: str, **more: Any) -> Change | None:
        change = take_over(doc, session=session, **more)
        while change is not None and isinstance(change.doc, Job) and change.doc.active:
            bites()
            rest = take_over(change.doc, session=change.doc.active[0].session, **more)
            assert rest is not None
            change = Change(rest.doc, (*change.records, *rest.records), rest.answer)
        return change

    return [(takeover_module, "take_over", everybodys)]


def _x02(bites: Bites) -> Patches:
    real = Keeper._renew

    def whoever_is_there(self: Keeper, session: str) -> bool:
        def extend(doc: Session, at: int) -> Change | None:
            bites(doc.name != session)
            return session_model.renew(doc, now=at)

        try:
            self._context.store.update(All(Kind.SESSION), extend)
        except StoreError:
            pass
        return real(self, session)

    return [(Keeper, "_renew", whoever_is_there)]


def _revived(doc: Session, now: int) -> Change:
    return Change(replace(doc, state=Life.LIVE, expires_at=now + doc.lease, beats=doc.beats + 1, ended_at=None))


def _x03(bites: Bites) -> Patches:
    def renew(doc: Session | Absent, *, now: int, **_: Any) -> Change | None:
        if isinstance(doc, Absent):
            return None
        bites(doc.state is not Life.LIVE)
        return _revived(doc, now)

    return [(holder_module, "renew", renew)]


def _x16(bites: Bites) -> Patches:
    real = OwnLease.renewed

    def from_the_reply(self: OwnLease, session: str, asked: float) -> bool:
        replied = self.boot()
        bites(replied > asked)
        return real(self, session, replied)

    return [(OwnLease, "renewed", from_the_reply)]


def _x17(bites: Bites) -> Patches:
    def stands_still(self: SimClock) -> float:
        bites(self._process.slept)
        return self.monotonic()

    return [(SimClock, "boot", stands_still)]


def _x18(bites: Bites) -> Patches:
    real = Settings.make

    def anything_goes(*, lease: Any, beat: Any, **more: Any) -> Settings:
        bites(beat is not None)
        made = real(lease=lease, beat=None, **more)
        return made if beat is None else replace(made, beat=float(str(beat).rstrip("s")))

    return [(Settings, "make", anything_goes)]


def _x34(bites: Bites) -> Patches:
    def renew(doc: Session | Absent, *, now: int, **more: Any) -> Change | None:
        change = session_model.renew(doc, now=now, **more)
        if change is None or not isinstance(doc, Session) or not isinstance(change.doc, Session):
            return change
        bites()
        return replace(change, doc=replace(change.doc, expires_at=doc.expires_at + doc.lease))

    return [(holder_module, "renew", renew)]


def _x40(bites: Bites) -> Patches:
    def without_a_cap(self: Backoff, failures: int, seed: str) -> int:
        plain = self.first * self.factor ** (failures - 1)
        bites(plain > self.cap)
        return int(plain)

    return [(Backoff, "delay", without_a_cap)]


def _x10(bites: Bites) -> Patches:
    def by_my_own_clock(self: Liveness, session: Session, *_: Any, **more: Any) -> bool:
        wall = self._runtime.clock.wall()
        if session.expires_at > wall:
            boot = self._runtime.clock.boot()
            self._watched[session.name] = _Watched(session.beats, boot, boot + session.lease / 4_000_000)
            return False
        bites()
        applied = self._store.update(
            Named(Kind.SESSION, (session.name,)),
            lambda doc, at: session_model.bury(doc, now=at, reason="expired by my clock"),
        )
        return applied.results[0].verdict == "applied"

    return [(Liveness, "bury_if_over", by_my_own_clock)]


def _x53(bites: Bites) -> Patches:
    real = Keeper._trouble

    def one_conflict_and_it_is_gone(self: Keeper, error: str) -> bool:
        bites()
        self._loss.lose("its renewal conflicted")
        return real(self, error)

    return [(Keeper, "_trouble", one_conflict_and_it_is_gone)]


MUTANTS = [
    Mutant(
        "X-01",
        "release without a check of the owner",
        "I4",
        _x01,
        Worlds({"kill": 15, "drain": 15, "jobs": 10}),
    ),
    Mutant("X-02", "renew without a check of the owner", "I4", _x02, Worlds({"kill": 20})),
    Mutant("X-03", "renewing after burial revives", "I4", _x03, Worlds({"freeze": 10})),
    Mutant("X-10", "expiry by a client's clock", "I1", _x10, Worlds({"clock_skew": 3600})),
    Mutant(
        "X-16",
        "the deadline is counted from the reply",
        "I8",
        _x16,
        Worlds({"slow": 0.3, "partition": 8, "jobs": 8}),
    ),
    Mutant("X-17", "the deadline is on a clock that stands still in suspend", "I8", _x17, Worlds({"suspend": 8})),
    Mutant(
        "X-18",
        "a beat as long as the lease is accepted",
        "doctor",
        _x18,
        Check(checks.a_lease_must_be_three_beats, by="config"),
    ),
    Mutant("X-34", "renewing adds to the expiry instead of setting it", "I14", _x34, Worlds({"kill": 20})),
    Mutant("X-40", "a backoff without a cap", "I14", _x40, Worlds({"jobs": 10}, hours=0.1)),
    Mutant(
        "X-53",
        "renew by version",
        "I14",
        _x53,
        Check(protocol.test_rule_4_a_lost_answer_costs_no_session, by="I14"),
    ),
]
