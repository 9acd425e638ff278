"""Requesting and claiming in one step: no other node comes in between, and no other node repeats it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solocron import allow
from solocron.model.change import Absent, Kind
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Origin
from solocron.model.documents.scoped_pause import Reach, Scope, ScopedPause
from solocron.model.refusals import Refusal, Refused
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import Needs, claim
from solocron.model.transitions.finishing import Outcome, finish, hand_back, take_over
from solocron.model.transitions.run_now import claim_now
from tests.unit.model.one_job import LATE_FOR, T0, definition, resolve

BY = Claimant(session="s1", node="n1", late_for=LATE_FOR)


def job(**options: Any) -> Job:
    return Job(name="work", incarnation=T0, definition=definition("1h", **options), cursor=T0, fence=7)


def now_of(doc: Job, *, request: str = "r1", by: Claimant = BY, shard: str | None = None) -> tuple[Job, Any]:
    change = claim_now(doc, request=request, payload={"n": 1}, shard=shard, now=T0, by=by, resolve=resolve)
    assert change is not None
    assert isinstance(change.doc, Job)
    return change.doc, change.answer


def test_the_run_is_held_in_the_step_that_requests_it() -> None:
    doc, hold = now_of(job())
    assert isinstance(hold, Hold)
    assert doc.active == (hold,)
    assert doc.waiting_runs == ()
    assert (hold.session, hold.origin, hold.payload, hold.attempt) == ("s1", Origin.TRIGGER, {"n": 1}, 1)
    assert hold.fence == doc.fence > 7
    assert doc.cursor == T0, "slots are left to the next ordinary claim"


def test_the_same_request_again_finds_its_hold_after_a_lost_reply() -> None:
    doc, hold = now_of(job())
    again, found = now_of(doc)
    assert found == hold
    assert again is doc


def test_a_failure_a_crash_and_a_hand_back_are_final() -> None:
    """The caller has been told by then: nothing of it may run later, on another node."""
    doc, hold = now_of(job(retries=3))
    failed = finish(doc, run=hold.run, fence=hold.fence, outcome=Outcome.failed("boom"), now=T0 + 1, resolve=resolve)
    lost = take_over(doc, session="s1", now=T0 + 1, reason="its lease ended", resolve=resolve)
    back = hand_back(doc, run=hold.run, fence=hold.fence, now=T0 + 1, reason="never started", resolve=resolve)
    for change, status in ((failed, "failed"), (lost, "lost"), (back, "cancelled")):
        assert change is not None
        assert isinstance(change.doc, Job)
        assert change.doc.waiting_runs == ()
        assert [record.status for record in change.records] == [status]


def test_a_job_that_runs_as_often_as_it_may_is_left_as_it_is() -> None:
    doc, _ = now_of(job())
    after, answer = now_of(doc, request="r2")
    assert answer == Refusal(Refused.BUSY)
    assert after is doc
    both, hold = now_of(now_of(job(overlap=allow(2)))[0], request="r2")
    assert isinstance(hold, Hold)
    assert len(both.active) == 2


def test_a_pause_of_many_jobs_stops_it_if_it_stops_what_is_requested() -> None:
    pause = ScopedPause(scope=Scope(Reach.ALL), at=T0 - 1)
    assert isinstance(now_of(job(), by=replace(BY, pauses=(pause,)))[1], Hold)
    doc = job()
    after, answer = now_of(doc, by=replace(BY, pauses=(replace(pause, triggers=True),)))
    assert answer == Refusal(Refused.PAUSED)
    assert after is doc


def test_a_limit_asks_for_its_permit_first() -> None:
    doc, answer = now_of(job(limit="db:1"))
    assert answer == Needs(limit="db:1")
    assert doc.waiting_runs == ()
    _, hold = now_of(job(limit="db:1"), by=Claimant(session="s1", node="n1", late_for=LATE_FOR, permit="db:1/0"))
    assert hold.permit == "db:1/0"


def test_an_active_run_of_the_caller_counts_for_the_next_slot() -> None:
    doc, _ = now_of(job())
    change = claim(doc, now=T0 + 3_600_000_000, by=BY, resolve=resolve)
    assert change is not None
    assert [record.status for record in change.records] == ["skipped"]


def test_nothing_is_claimed_of_what_is_not_there() -> None:
    absent = Absent(Kind.JOB, "work")
    assert claim_now(absent, request="r", payload=None, shard=None, now=T0, by=BY, resolve=resolve) is None
    _, answer = now_of(job(enabled=False))
    assert answer == Refusal(Refused.DISABLED)
    _, answer = now_of(job(shards=("eu", "us")))
    assert answer == Refusal(Refused.EACH_SHARD)
