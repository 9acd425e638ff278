"""A session is begun, renewed and closed by one implementation, for nodes and for processes that only hold locks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.errors import StoreUnavailable
from solocron.lease.holder import FORMER, Fate, Holder
from solocron.lease.own import OwnLease
from solocron.lease.terms import LeaseTerms
from solocron.lease.trust import Standing
from solocron.model.change import Change, Kind
from solocron.model.documents.session import REFUSED, Life, Session, bury
from solocron.runtime import Threads
from solocron.stores.contract import Applied, Named, Verdict
from solocron.stores.memory import MemoryStore, World
from tests.unit.lease.kit import BootClock

TERMS = LeaseTerms(node="n", host="h", pid=1, lease=15.0, beat=5.0)
DESCRIBED = Session(name="", node="n", host="h", pid=1, lease=15 * SECOND)


class Stage:
    """A holder on a store whose time is the same as the holder's."""

    def __init__(self) -> None:
        self.clock = BootClock()
        runtime = Threads(self.clock)
        self.store = MemoryStore(world=World(clock=lambda: round(self.clock.now * SECOND)))
        self.lease = OwnLease(runtime, TERMS, lambda: self.replanned.append(self.clock.now))
        self.holder = Holder(self.store, runtime, self.lease, TERMS)
        self.replanned: list[float] = []
        self.session, _ = self.holder.begin(DESCRIBED)

    def document(self) -> Session:
        (doc,) = self.store.read(Named(Kind.SESSION, (self.session,)))
        assert isinstance(doc, Session)
        return doc

    def change(self, change: Any) -> None:
        self.store.update(Named(Kind.SESSION, (self.session,)), change)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_session_is_begun_under_a_new_id_and_trusted(stage: Stage) -> None:
    assert stage.document().state is Life.LIVE
    assert stage.lease.standing() is Standing.HELD
    assert stage.holder.begin(DESCRIBED)[0] != stage.session


def test_a_renewal_extends_lease_and_trust(stage: Stage) -> None:
    stage.clock.now += 5
    renewal = stage.holder.renew(stage.session, running=3)
    assert renewal.fate is Fate.RENEWED
    assert (stage.document().beats, stage.document().running) == (1, 3)
    assert stage.lease.beats == stage.holder.former[stage.session].beats == 1
    assert stage.lease.trusted_until(stage.session) == pytest.approx(stage.clock.now + 13.5)


def test_a_buried_session_is_not_renewed(stage: Stage) -> None:
    stage.change(lambda doc, now: bury(doc, now=now, reason="test"))
    assert stage.holder.renew(stage.session).fate is Fate.REFUSED
    assert stage.document().state is Life.DEAD


def test_a_session_that_is_gone_is_not_created_anew(stage: Stage) -> None:
    stage.holder.remove(stage.session)
    assert stage.holder.renew(stage.session).fate is Fate.REFUSED
    assert stage.store.read(Named(Kind.SESSION, (stage.session,))) == ()


def test_a_document_older_than_what_was_acknowledged_is_refused_until_its_holder_lifts_it(stage: Stage) -> None:
    for _ in range(3):
        stage.holder.renew(stage.session)
    stage.change(lambda doc, now: Change(replace(doc, beats=1)))
    assert stage.holder.renew(stage.session).fate is Fate.REFUSED
    assert stage.holder.renew(stage.session, lift=True, mark="2 b").fate is Fate.RENEWED
    assert (stage.document().beats, stage.document().epoch) == (5, "2 b")


def test_a_reply_after_the_trust_has_ended_is_late(stage: Stage) -> None:
    update = stage.store.update

    def slowly(*args: Any, **more: Any) -> Applied:
        applied = update(*args, **more)
        stage.clock.now += 13.5
        return applied

    stage.store.update = slowly  # type: ignore[method-assign]
    assert stage.holder.renew(stage.session).fate is Fate.LATE
    assert stage.lease.standing() is Standing.NONE


def test_a_lost_reply_costs_no_session(stage: Stage) -> None:
    update = stage.store.update

    def unanswered(*args: Any, **more: Any) -> Applied:
        applied = update(*args, **more)
        return replace(applied, results=tuple(replace(r, verdict=Verdict.UNKNOWN) for r in applied.results), now=0)

    stage.store.update = unanswered  # type: ignore[method-assign]
    assert stage.holder.renew(stage.session).fate is Fate.UNCERTAIN
    assert stage.lease.standing() is Standing.JEOPARDY
    stage.store.update = update  # type: ignore[method-assign]
    assert stage.holder.renew(stage.session).fate is Fate.RENEWED
    assert (stage.document().beats, stage.lease.standing()) == (2, Standing.HELD)
    assert stage.replanned, "jeopardy is over"


def test_a_store_that_is_away_is_jeopardy(stage: Stage) -> None:
    def away(*args: Any, **more: Any) -> Applied:
        raise StoreUnavailable("away")

    stage.store.update = away  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        stage.holder.renew(stage.session)
    assert stage.lease.standing() is Standing.JEOPARDY


def test_a_closed_session_is_dead_at_once(stage: Stage) -> None:
    stage.holder.close(stage.session, "test")
    assert (stage.document().state, stage.document().reason) == (Life.DEAD, "test")


def test_only_the_latest_sessions_are_remembered(stage: Stage) -> None:
    begun = [stage.holder.begin(DESCRIBED)[0] for _ in range(FORMER)]
    assert list(stage.holder.former) == begun


def test_beats_are_jittered_and_tries_after_a_failure_come_sooner(stage: Stage) -> None:
    now = stage.clock.now
    beats = {round(stage.holder.next_beat(now) - now, 6) for _ in range(50)}
    tries = {round(stage.holder.next_try() - now, 6) for _ in range(50)}
    assert len(beats) > 10
    assert all(4.25 <= beat <= 5.0 for beat in beats)
    assert all(0.5 <= one <= 0.75 for one in tries)


def test_a_renewal_tells_how_far_the_clock_of_its_process_is_off(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage.clock, "wall", lambda: round((stage.clock.now + 1.4) * SECOND))
    stage.clock.now += 5
    stage.holder.renew(stage.session)
    assert stage.document().report.skew == 1_400_000


def test_a_renewal_tells_of_the_latest_late_one(stage: Stage) -> None:
    stage.clock.now += 5
    stage.holder.renew(stage.session)
    assert (stage.document().report.late_by, stage.document().report.late_at) == (0, None)
    stage.clock.now += 9
    stage.holder.renew(stage.session)
    late_at = stage.store.clock()
    assert (stage.document().report.late_by, stage.document().report.late_at) == (4 * SECOND, late_at)
    stage.clock.now += 5
    stage.holder.renew(stage.session)
    assert stage.document().report.late_at == late_at, "it stays on record"


def test_refused_ends_are_told_with_the_next_renewal_the_last_sixteen_of_them(stage: Stage) -> None:
    for fence in range(REFUSED + 2):
        stage.lease.refused("j@1", fence, "succeeded")
    assert stage.document().report.refused == (), "no write of its own"
    stage.clock.now += 5
    stage.holder.renew(stage.session)
    told = stage.document().report.refused
    assert [one.fence for one in told] == list(range(2, REFUSED + 2))
    assert (told[0].run, told[0].outcome) == ("j@1", "succeeded")


def test_a_renewal_is_one_write_whatever_it_tells(stage: Stage) -> None:
    costs = []
    for refused in (0, 1):
        before = stage.store.statements.copy()
        for fence in range(refused):
            stage.lease.refused("j@1", fence, "failed")
        stage.clock.now += 5
        stage.holder.renew(stage.session)
        costs.append(stage.store.statements - before)
    assert costs[0] == costs[1]
