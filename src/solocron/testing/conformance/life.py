"""A whole life with the real machine: defined, claimed, finished; its node dies, another takes over, the old is refused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from solocron.clock import SECOND
from solocron.model.asking import cancel, pause, resume, trigger
from solocron.model.change import Change, Kind
from solocron.model.claiming import Claimant, claim
from solocron.model.defining import Proposal, define, remove
from solocron.model.definition import Definition
from solocron.model.ending import Outcome, finish, note_progress, take_over
from solocron.model.job import Hold
from solocron.model.run import Status
from solocron.model.session import Session, begin, bury, renew, swept
from solocron.model.timetable import EMPTY, Timetable
from solocron.schedules import load
from solocron.stores.contract import Due, HeldBy, Result, Store, ToSweep, Verdict
from solocron.testing.conformance.kit import Clients, get, log, names, write

__all__ = ["Life"]

LEASE = 15 * SECOND
MINUTE = 60 * SECOND
MINE = Due(handlers=frozenset({"h"}), pools=frozenset({"default"}), limit=100)


def resolve(spec: Mapping[str, Any] | None) -> Timetable:
    """The timetable of a schedule as it is written in a document."""
    return EMPTY if spec is None else Timetable(load(spec))


class Node:
    """The calls of a node, in the order that a test wants them."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.name = name
        mine = Session(name=name, node=name, host="host", pid=1, lease=LEASE)
        self._write(Kind.SESSION, name, lambda doc, now: begin(doc, mine, now=now))

    def claim(self) -> list[Hold]:
        """Claim what is due."""
        by = Claimant(session=self.name, node=self.name, late_for=25 * SECOND)
        change = lambda doc, now: claim(doc, now=now, by=by, resolve=resolve)  # noqa: E731 - reads as what it is
        applied = self.store.update(MINE, change, session=self.name)
        return [result.answer for result in applied.results if result.answer]

    def finish(self, hold: Hold, outcome: Outcome) -> Result:
        """End a run."""
        change = partial(finish, run=hold.run, fence=hold.fence, outcome=outcome, resolve=resolve)
        return self._write(Kind.JOB, hold.run.rpartition("@")[0], lambda doc, now: change(doc, now=now))

    def renew(self) -> Verdict:
        """Renew the session."""
        return self._write(Kind.SESSION, self.name, lambda doc, now: renew(doc, now=now)).verdict

    def sweep(self) -> list[str]:
        """Bury what has expired, take its runs over, sweep it; the sessions that were swept."""
        change = partial(bury, reason="expired")
        self.store.update(ToSweep(), lambda doc, now: change(doc, now=now))
        dead = names(self.store.read(ToSweep()))
        for name in dead:
            end = partial(take_over, session=name, reason="its node died", resolve=resolve)
            self.store.update(HeldBy(name), lambda doc, now, end=end: end(doc, now=now))
            self._write(Kind.SESSION, name, lambda doc, now: swept(doc, now=now))
        return dead

    def ask(self, job: str, what: Any, **how: Any) -> Result:
        """Any request of a person."""
        return self._write(Kind.JOB, job, lambda doc, now: what(doc, now=now, resolve=resolve, **how))

    def _write(self, kind: Kind, name: str, change: Any) -> Result:
        (result,) = write(self.store, kind, name, change).results
        return result


class Life:
    """Chapter ten."""

    def test_a_run_is_claimed_finished_and_taken_over(self, clients: Clients) -> None:
        a, b = Node(clients.new(), "a"), Node(clients.new(), "b")
        minutely = Proposal(definition=_definition(retries=1), source="deploy")
        assert a.ask("j", define, proposal=minutely, late_for=0).answer == "added"
        assert a.claim() == b.claim() == []

        clients.advance(MINUTE)
        (first,) = a.claim()
        assert b.claim() == []
        assert a.finish(first, Outcome.succeeded("1")).answer == "accepted"
        assert a.finish(first, Outcome.succeeded("1")).answer == "accepted before"

        a.renew(), b.renew()
        clients.advance(MINUTE)
        b.renew()
        (lost,) = a.claim()
        a.store.update(
            HeldBy("a"), lambda doc, now: note_progress(doc, run=lost.run, fence=lost.fence, progress="half", now=now)
        )
        assert a.renew() is Verdict.APPLIED
        clients.advance(LEASE)
        b.renew()
        assert b.sweep() == ["a"]
        assert b.store.read(HeldBy("a")) == ()
        (again,) = b.claim()
        assert (again.run, again.attempt, again.session) == (lost.run, 2, "b")
        assert again.fence > lost.fence > first.fence

        assert a.renew() is Verdict.DECLINED
        assert a.claim() == []
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

    def test_requests_change_what_runs(self, clients: Clients) -> None:
        a = Node(clients.new(), "a")
        a.ask("j", define, proposal=Proposal(definition=_definition(), source=None), late_for=0)
        triggered = a.ask("j", trigger, request="r1", payload={"n": 1}, at=None).answer
        assert a.ask("j", trigger, request="r1", payload={"n": 2}, at=None).answer == triggered
        (hold,) = a.claim()
        assert (hold.run, hold.payload) == (triggered, {"n": 1})
        assert a.ask("j", cancel, run=triggered, reason="enough").answer == "asked"
        assert [h.cancel for h in get(a.store, Kind.JOB, "j").active] == ["enough"]
        a.finish(hold, Outcome.cancelled("enough"))

        a.ask("j", pause, by="me", note="tea", until=None, late_for=0)
        clients.advance(10 * MINUTE)
        a.renew()
        assert a.claim() == []
        assert a.ask("j", resume).answer == "resumed"
        (skipped,) = log(a.store, statuses=frozenset({"skipped"}))
        assert (skipped.count, skipped.reason) == (10, "paused: tea")
        assert a.store.tally(0)["skipped"] == 10

        assert a.ask("j", remove, late_for=0).answer == "removed"
        assert get(a.store, Kind.JOB, "j") is None

    def test_a_job_that_is_removed_goes_with_its_last_hold(self, clients: Clients) -> None:
        a = Node(clients.new(), "a")
        a.ask("j", define, proposal=Proposal(definition=_definition(), source=None), late_for=0)
        clients.advance(MINUTE)
        (hold,) = a.claim()
        a.ask("j", remove, late_for=0)
        assert get(a.store, Kind.JOB, "j").removed
        assert a.claim() == []
        a.finish(hold, Outcome.cancelled("removed"))
        assert get(a.store, Kind.JOB, "j") is None
        assert a.store.read(HeldBy("a")) == ()
        assert [r.status for r in log(a.store)] == [Status.CANCELLED]


def _definition(**more: Any) -> Definition:
    return Definition(handler="h", schedule={"kind": "every", "period": "1m"}, **more)
