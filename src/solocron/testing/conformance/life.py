"""A whole life with the real state machine: defined, claimed, finished; a node dies, another takes over for good."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.model.change import Change, Kind
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Status
from solocron.model.documents.session import Life as State
from solocron.model.documents.session import Progress, Session, begin, progress_of, renew, swept
from solocron.model.timetable import EMPTY, Timetable
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import claim
from solocron.model.transitions.commands import cancel, pause, resume, trigger
from solocron.model.transitions.finishing import Outcome, finish, take_over
from solocron.model.transitions.registration import Proposal, define, remove
from solocron.schedules import load
from solocron.stores.contract import All, Applied, Due, HeldBy, HeldByAny, Named, Result, Store, Verdict, Which
from solocron.testing.conformance.kit import Clients, bury_expired, counts_of, get, job, log, put, record

__all__ = ["WholeLife"]

LEASE = 15 * SECOND
DAY = 24 * 3600 * SECOND
Pure = Callable[..., Change | None]
MINE = Due(handlers=frozenset({"h"}), pools=frozenset({"default"}), limit=100)


def resolve(spec: Mapping[str, Any] | None) -> Timetable:
    """Return the timetable of a schedule in its stored form."""
    return EMPTY if spec is None else Timetable(load(spec))


class ScriptedNode:
    """The calls of a node, in the order that a test wants them."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.name = name
        mine = Session(name=name, node=name, host="host", pid=1, lease=LEASE)
        self.write(name, partial(begin, session=mine), Kind.SESSION)

    def claim(self) -> list[Hold]:
        """Claim what is due."""
        by = Claimant(session=self.name, node=self.name, late_for=25 * SECOND)
        applied = self.update(MINE, partial(claim, by=by, resolve=resolve), session=self.name)
        return [result.answer for result in applied.results if result.answer]

    def finish(self, hold: Hold, outcome: Outcome) -> Result:
        """End a run."""
        return self.write("j", partial(finish, run=hold.run, fence=hold.fence, outcome=outcome, resolve=resolve))

    def ask(self, what: Pure, **how: Any) -> Result:
        """Apply any command of a person."""
        return self.write("j", partial(what, resolve=resolve, **how))

    def renew(self, progress: Progress = ()) -> Verdict:
        """Renew the session, with the progress of its runs."""
        return self.write(self.name, partial(renew, progress=progress), Kind.SESSION).verdict

    def sweep(self) -> list[str]:
        """Bury what has expired, take its runs over, sweep it; return the swept sessions."""
        self.update(All(Kind.SESSION), bury_expired)
        sessions = [doc for doc in self.store.read(All(Kind.SESSION)) if isinstance(doc, Session)]
        dead = [session for session in sessions if session.state is State.DEAD]
        for one in dead:
            take = partial(take_over, session=one.name, reason="its node died", resolve=resolve)
            self.update(HeldBy(one.name), partial(take, progress=progress_of(one)))
            self.write(one.name, swept, Kind.SESSION)
        return [one.name for one in dead]

    def update(self, which: Which, change: Pure, **more: Any) -> Applied:
        """Apply a function of the state machine."""
        return self.store.update(which, lambda doc, now: change(doc, now=now), **more)

    def write(self, name: str, change: Pure, kind: Kind = Kind.JOB) -> Result:
        """Apply it to one document."""
        (result,) = self.update(Named(kind, (name,)), change).results
        return result


class WholeLife:
    """Chapter ten."""

    def test_a_run_is_claimed_finished_and_taken_over(self, clients: Clients) -> None:
        a, b = ScriptedNode(clients.new(), "a"), ScriptedNode(clients.new(), "b")
        _to_noon(clients, a.store)
        daily = Proposal(definition=_definition(retries=1), source="deploy")
        assert a.ask(define, proposal=daily, late_for=0).answer == "added"
        assert a.claim() == b.claim() == []

        clients.advance(DAY)
        (first,) = a.claim()
        assert b.claim() == []
        assert a.finish(first, Outcome.succeeded("1")).answer == "accepted"
        assert a.finish(first, Outcome.succeeded("1")).answer == "accepted before"

        clients.advance(DAY)
        (lost,) = a.claim()
        assert a.renew(((lost.run, lost.fence, "half"),)) is Verdict.APPLIED
        clients.advance(LEASE)
        assert b.renew() is Verdict.APPLIED
        assert b.sweep() == ["a"]
        assert b.store.read(HeldBy("a")) == ()
        assert a.claim() == []
        (again,) = b.claim()
        assert (again.run, again.attempt, again.session) == (lost.run, 2, "b")
        assert again.fence > lost.fence > first.fence

        assert a.renew() is Verdict.DECLINED
        assert a.finish(lost, Outcome.succeeded("too late")).verdict is Verdict.DECLINED
        assert b.finish(again, Outcome.succeeded("2")).answer == "accepted"
        records = [(r.run, r.attempt, r.status, r.node, r.fence, r.result, r.progress) for r in log(a.store)]
        assert sorted(records) == sorted(
            [
                (first.run, 1, Status.SUCCEEDED, "a", first.fence, "1", None),
                (lost.run, 1, Status.LOST, "a", lost.fence, None, "half"),
                (again.run, 2, Status.SUCCEEDED, "b", again.fence, "2", None),
            ]
        )

    def test_what_runs_is_in_the_document_and_what_has_ended_in_the_log(self, clients: Clients) -> None:
        a, b = ScriptedNode(clients.new(), "a"), clients.new()
        _to_noon(clients, a.store)
        a.ask(define, proposal=Proposal(definition=_definition(), source=None), late_for=0)
        clients.advance(DAY)
        (hold,) = a.claim()
        assert log(b) == ()
        (held,) = b.read(HeldByAny())
        assert isinstance(held, Job)
        assert held.active == (hold,)
        a.finish(hold, Outcome.succeeded())
        assert b.read(HeldByAny()) == ()
        (ended,) = log(b)
        assert (ended.run, ended.attempt, ended.recorded_at) == (hold.run, 1, ended.finished_at)

    @pytest.mark.invariant("I6: every slot has exactly one last word")
    def test_an_end_that_is_on_record_already_ends_its_hold_all_the_same(self, clients: Clients) -> None:
        """Else it would be repeated forever, and its session never be swept."""
        a, b = ScriptedNode(clients.new(), "a"), ScriptedNode(clients.new(), "b")
        _to_noon(clients, a.store)
        a.ask(define, proposal=Proposal(definition=_definition(), source=None), late_for=0)
        clients.advance(DAY)
        (hold,) = a.claim()
        first = record(hold.run, job="j", status=Status.SUCCEEDED, node="another")
        put(b.store, job("other"), records=(first,))
        ended = a.finish(hold, Outcome.failed("late"))
        assert (ended.verdict, ended.duplicates) == (Verdict.APPLIED, (first,))
        assert log(b.store) == (first,)
        assert b.store.read(HeldBy("a")) == ()

        clients.advance(DAY)
        a.renew()
        (lost,) = a.claim()
        second = record(lost.run, job="j", status=Status.CANCELLED)
        put(b.store, job("other"), records=(second,))
        clients.advance(LEASE)
        b.renew()
        b.update(All(Kind.SESSION), bury_expired)
        take = partial(take_over, session="a", reason="died", resolve=resolve)
        (taken,) = b.update(HeldBy("a"), take).results
        assert (taken.verdict, taken.duplicates) == (Verdict.APPLIED, (second,))
        assert b.store.read(HeldBy("a")) == ()
        assert set(log(a.store)) == {first, second}

    def test_requests_change_what_runs(self, clients: Clients) -> None:
        a = ScriptedNode(clients.new(), "a")
        _to_noon(clients, a.store)
        a.ask(define, proposal=Proposal(definition=_definition(), source=None), late_for=0)
        triggered = a.ask(trigger, request="r1", payload={"n": 1}, at=None).answer
        assert a.ask(trigger, request="r1", payload={"n": 2}, at=None).answer == triggered
        (hold,) = a.claim()
        assert (hold.run, hold.payload) == (triggered, {"n": 1})
        assert a.ask(cancel, run=triggered, reason="enough").answer == "asked"
        assert [h.cancel for h in get(a.store, Kind.JOB, "j").active] == ["enough"]
        a.finish(hold, Outcome.cancelled("enough"))

        a.ask(pause, by="me", note="tea", until=None, late_for=0)
        clients.advance(10 * DAY)
        a.renew()
        assert a.claim() == []
        assert a.ask(resume).answer == "resumed"
        (skipped,) = log(a.store, statuses=frozenset({"skipped"}))
        assert (skipped.count, skipped.reason) == (10, "paused: tea")
        assert counts_of(a.store)["skipped"] == 10

        assert a.ask(remove, late_for=0).answer == "removed"
        assert get(a.store, Kind.JOB, "j") is None

    def test_a_job_that_is_removed_goes_with_its_last_hold(self, clients: Clients) -> None:
        a = ScriptedNode(clients.new(), "a")
        _to_noon(clients, a.store)
        a.ask(define, proposal=Proposal(definition=_definition(), source=None), late_for=0)
        clients.advance(DAY)
        (hold,) = a.claim()
        a.ask(remove, late_for=0)
        assert get(a.store, Kind.JOB, "j").removed
        assert a.claim() == []
        a.finish(hold, Outcome.cancelled("removed"))
        assert get(a.store, Kind.JOB, "j") is None
        assert a.store.read(HeldBy("a")) == ()
        assert [r.status for r in log(a.store)] == [Status.CANCELLED]


def _to_noon(clients: Clients, store: Store) -> None:
    """Move far from the slots of a daily job: a test that runs around midnight must not meet one more."""
    clients.advance(DAY + (DAY + DAY // 2 - store.clock() % DAY) % DAY)


def _definition(**more: Any) -> Definition:
    return Definition(handler="h", schedule={"kind": "every", "period": "1d"}, **more)
