"""Finish, hand back, take over, progress: accepted for the very hold (run, fence) alone, else refused with no trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from solocron.clock import MILLISECOND
from solocron.model.change import Absent, Kind
from solocron.model.documents.job import Hold
from solocron.model.documents.run import Status
from solocron.model.policy import Backoff, allow
from solocron.model.transitions.finishing import Outcome, finish, hand_back, take_over
from tests.unit.model.one_job import T0, OneJob, resolve, seconds

BAD = [Outcome.failed("it broke"), Outcome.timed_out("after 10 s")]


def held(**options: Any) -> tuple[OneJob, Hold]:
    """A job one of whose runs is held by node a."""
    job = OneJob("1h", **options).at(3600)
    return job, job.claims("a")


class TestFinish:
    def test_it_ends_the_hold_and_closes_its_record(self) -> None:
        job, hold = held()
        job.at(3605)
        assert job.finish(hold, replace(Outcome.succeeded("42"), started_at=T0, progress="9/9")) == "accepted"
        assert job.job.active == ()
        (record,) = job.log.values()
        assert (record.status, record.result, record.started_at, record.progress) == ("succeeded", "42", T0, "9/9")
        assert (record.fence, record.finished_at) == (hold.fence, job.now)

    def test_the_outcome_is_kept_for_the_next_run(self) -> None:
        job, hold = held()
        job.fail(hold)
        assert job.job.last is not None
        assert (job.job.last.status, job.job.last.error, job.job.last.run) == ("failed", "it broke", hold.run)

    def test_of_a_long_error_the_document_keeps_the_end_and_the_log_the_whole(self) -> None:
        job, hold = held()
        error = "x" * 10_000 + "the cause"
        job.finish(hold, Outcome.failed(error))
        assert job.job.last is not None
        assert job.job.last.error is not None
        assert len(job.job.last.error) == 200
        assert job.job.last.error.endswith("the cause")
        assert job.records("failed")[0].error == error

    @pytest.mark.invariant("I13: a repeated request has no second effect")
    def test_a_repeated_finish_is_answered_as_accepted_and_changes_nothing(self) -> None:
        job, hold = held()
        job.finish(hold)
        before, entries = job.doc, dict(job.log)
        assert job.fail(hold) == "accepted before"
        assert job.doc is before
        assert job.log == entries

    @pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
    def test_a_finish_without_its_hold_is_refused(self) -> None:
        job, hold = held(retries=1)
        job.take_over("a")
        before = job.doc
        assert job.finish(hold) is None
        job.claims("b")
        assert job.finish(hold) is None
        assert job.finish(replace(hold, fence=hold.fence + 1)) is None
        assert job.finish(replace(hold, run="work@other")) is None
        assert before is not None

    @pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
    def test_the_run_must_match_as_well_as_the_fence(self) -> None:
        job, hold = held()
        assert job.finish(replace(hold, run="work@other")) is None
        assert job.job.active == (hold,)

    @pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
    def test_what_was_handed_back_cannot_be_finished(self) -> None:
        job, hold = held()
        job.hand_back(hold)
        assert job.finish(hold) is None

    def test_nothing_is_finished_in_a_document_that_is_gone(self) -> None:
        gone = Absent(Kind.JOB, "work")
        done = Outcome.succeeded()
        assert finish(gone, run="work@1", fence=1, outcome=done, now=T0, resolve=resolve) is None

    def test_it_remembers_a_finish_of_each_run_that_may_run_at_once(self) -> None:
        job = OneJob("1m", overlap=allow(8))
        holds = [job.at(60 * n).claims(f"n{n}") for n in range(1, 9)]
        for hold in holds:
            job.finish(hold)
        assert [job.finish(hold) for hold in holds] == ["accepted before"] * 8

    def test_failures_in_a_row_are_counted_once_a_run_and_forgotten_at_a_success(self) -> None:
        job = OneJob("1m", retries=1, backoff=Backoff(first="1s", cap="1s"))
        job.fail(job.at(60).claims())
        assert job.job.failures == 0, "it will be tried again"
        job.fail(job.at(62).claims())
        assert job.job.failures == 1
        job.finish(job.at(120).claims(), Outcome.cancelled("a person asked"))
        assert job.job.failures == 1
        job.finish(job.at(180).claims())
        assert job.job.failures == 0


class TestRetry:
    @pytest.mark.parametrize("bad", BAD, ids=lambda outcome: str(outcome.status))
    def test_a_failure_waits_and_the_attempt_counts_on(self, bad: Outcome) -> None:
        job, hold = held(retries=1, backoff=Backoff(first="10s", jitter=0))
        job.finish(hold, bad)
        assert job.at(3609.999).claim("b") is None
        again = job.at(3610).claims("b")
        assert (again.run, again.slot, again.attempt, again.tries) == (hold.run, hold.slot, 2, 1)
        assert again.fence > hold.fence
        job.finish(again, bad)
        assert job.job.waiting_runs == ()

    def test_each_wait_is_longer_up_to_the_cap(self) -> None:
        job = OneJob("1w", retries=6, backoff=Backoff(first="1s", factor=3, cap="20s", jitter=0))
        job.at(3 * 86_400)  # the first whole week after 1970 that follows T0
        waits = []
        for _ in range(6):
            job.fail(job.claims())
            assert job.job.due_at is not None
            waits.append((job.job.due_at - job.now) / 1e6)
            job.now = job.job.due_at
        assert waits == [1, 3, 9, 20, 20, 20]

    def test_a_success_is_not_repeated_and_neither_is_a_cancelled_run(self) -> None:
        for outcome in (Outcome.succeeded(), Outcome.cancelled("a person asked")):
            job, hold = held(retries=5)
            job.finish(hold, outcome)
            assert job.job.waiting_runs == ()

    def test_a_body_cut_off_by_a_shutdown_is_repeated_at_once_if_retries_remain(self) -> None:
        job, hold = held(retries=1)
        job.finish(hold, Outcome.cancelled("shutdown", again=True))
        again = job.claims("b")
        assert (again.attempt, again.tries) == (2, 1)
        job.finish(again, Outcome.cancelled("shutdown", again=True))
        assert job.job.waiting_runs == ()

    def test_no_retries_is_at_most_once(self) -> None:
        for outcome in (*BAD, Outcome.cancelled("shutdown", again=True)):
            job, hold = held()
            job.finish(hold, outcome)
            assert job.job.waiting_runs == ()
            assert job.at(3700).claim("b") is None

    def test_a_run_that_was_asked_to_stop_is_not_tried_again(self) -> None:
        job, hold = held(retries=5)
        job.cancel(hold.run)
        job.fail(hold)
        assert job.job.waiting_runs == ()

    def test_payload_and_request_travel_with_the_retry(self) -> None:
        job = OneJob(None, retries=1, backoff=Backoff(first="0s"))
        job.trigger("r", payload={"user": 7})
        hold = job.claims("a")
        job.fail(hold)
        again = job.claims("b")
        assert (again.payload, again.request, again.run) == ({"user": 7}, "r", hold.run)


class TestHandBack:
    def test_it_waits_again_at_once_and_uses_no_retry(self) -> None:
        job, hold = held()
        for attempt in range(2, 6):
            assert job.hand_back(hold) == "accepted"
            hold = job.claims("b")
            assert (hold.attempt, hold.tries) == (attempt, 0)
        assert job.reasons("cancelled") == ["the node drains"] * 4
        assert job.job.failures == 0

    @pytest.mark.invariant("I15: nothing starts early by the store's clock")
    def test_it_is_not_early_when_the_stores_clock_has_stepped_back(self) -> None:
        job, hold = held()
        job.at(3590).hand_back(hold)
        assert job.claim("b") is None
        assert job.at(3600).claims("b").attempt == 2

    def test_a_retry_that_is_handed_back_keeps_what_it_has_used(self) -> None:
        job, hold = held(retries=1, backoff=Backoff(first="0s"))
        job.fail(hold)
        job.hand_back(job.claims("b"))
        last = job.claims("c")
        assert (last.attempt, last.tries) == (3, 1)
        job.fail(last)
        assert job.job.waiting_runs == ()

    @pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
    def test_without_the_hold_it_is_refused(self) -> None:
        job, hold = held()
        job.finish(hold)
        before = job.doc
        assert job.hand_back(hold) is None
        assert job.doc is before
        gone = Absent(Kind.JOB, "work")
        assert hand_back(gone, run=hold.run, fence=hold.fence, now=T0, reason="x", resolve=resolve) is None

    def test_one_that_was_asked_to_stop_ends_there(self) -> None:
        job, hold = held(retries=3)
        job.cancel(hold.run, "a person asked")
        job.hand_back(hold)
        assert job.job.waiting_runs == ()
        assert job.claim("b") is None
        assert job.reasons("cancelled") == ["a person asked"]


class TestTakeOver:
    def test_without_retries_the_slot_is_lost_and_not_repeated(self) -> None:
        job, _ = held()
        assert job.take_over("a") == "accepted"
        assert job.ended() == [(3600, "lost")]
        assert job.reasons("lost") == ["its session was buried"]
        assert job.claim("b") is None
        assert job.job.failures == 1

    def test_a_lost_run_says_why_even_if_nobody_told(self) -> None:
        job, hold = held()
        job.apply(lambda doc: take_over(doc, session=hold.session, now=job.now, reason="", resolve=resolve))
        assert job.reasons("lost") == ["its lease ended"]

    def test_with_retries_it_is_tried_at_once_by_another_node(self) -> None:
        job, hold = held(retries=1, backoff=Backoff(first="5m", cap="5m"))
        job.take_over("a")
        again = job.claims("b")
        assert (again.run, again.attempt, again.tries, again.node) == (hold.run, 2, 1, "b")

    def test_crashes_and_failures_share_the_budget(self) -> None:
        job, hold = held(retries=2, backoff=Backoff(first="0s"))
        job.fail(hold)
        job.claims("b")
        job.take_over("b")
        job.fail(job.claims("c"))
        assert job.job.waiting_runs == ()
        assert [status for _, status in job.ended()] == ["failed", "lost", "failed"]

    def test_on_crash_fail_limits_retries_to_failures(self) -> None:
        job, hold = held(retries=5, on_crash="fail", backoff=Backoff(first="0s"))
        job.fail(hold)
        job.claims("b")
        job.take_over("b")
        assert job.job.waiting_runs == ()

    @pytest.mark.invariant("I3: the fences of a job only grow")
    def test_the_fence_rises_so_that_the_old_holder_is_stale_at_once(self) -> None:
        job, hold = held()
        job.at(3600)
        job.take_over("a")
        assert job.job.fence > hold.fence
        job, hold = held()
        job.at(3700).take_over("a")
        assert job.job.fence >= job.now // MILLISECOND

    def test_only_the_holds_of_that_session_end(self) -> None:
        job = OneJob("1m", overlap=allow(3))
        job.at(60).claims("a")
        kept = job.at(120).claims("b")
        job.at(180).claims("a")
        job.take_over("a")
        assert job.job.active == (kept,)
        assert [seconds(record.slot) for record in job.records("lost")] == [60, 180]

    def test_a_session_that_holds_nothing_changes_nothing(self) -> None:
        job, _ = held()
        assert job.take_over("b") is None
        gone = Absent(Kind.JOB, "work")
        assert take_over(gone, session="s", now=T0, reason="x", resolve=resolve) is None

    def test_a_second_sweeper_finds_nothing_left(self) -> None:
        job, _ = held(retries=1)
        job.take_over("a")
        before = job.doc
        assert job.take_over("a") is None
        assert job.doc is before


class TestProgress:
    def test_a_takeover_keeps_what_the_dead_session_reported(self) -> None:
        job, hold = held()
        change = take_over(
            job.job, session=hold.session, now=job.now, reason="died", resolve=resolve,
            progress={(hold.run, hold.fence): "3/9", (hold.run, hold.fence - 1): "of another claim"},
        )  # fmt: skip
        assert change is not None
        assert [(record.status, record.progress) for record in change.records] == [(Status.LOST, "3/9")]
