"""`pause_after=n`: a job whose runs fail n times in a row waits for a person, and says why."""

from __future__ import annotations

from solocron.clock import SECOND
from solocron.model.transitions.commands import preview_resume
from solocron.model.transitions.finishing import PAUSED, Outcome
from tests.unit.model.one_job import LATE_FOR, OneJob, resolve, seconds


def fail_slots(job: OneJob, *slots: float) -> str | None:
    """Run these slots, each to a bad end; the answer to the last."""
    answer = None
    for slot in slots:
        answer = job.at(slot).fail(job.claims("a"))
    return answer


def test_the_nth_failure_in_a_row_pauses_in_the_same_step() -> None:
    job = OneJob("1m", pause_after=3)
    assert fail_slots(job, 60, 120) == "accepted"
    assert job.job.paused is None
    assert fail_slots(job, 180) == PAUSED
    assert job.job.paused is not None
    assert job.job.paused.note == "3 runs in a row failed (pause_after); the last: it broke"
    assert job.at(240).claim() is None


def test_a_success_begins_the_count_anew() -> None:
    job = OneJob("1m", pause_after=2)
    fail_slots(job, 60)
    assert job.at(120).run_all() == [120]
    assert fail_slots(job, 180) == "accepted"
    assert fail_slots(job, 240) == PAUSED


def test_a_run_counts_once_however_often_it_is_tried() -> None:
    job = OneJob("1m", pause_after=2, retries=1)
    fail_slots(job, 60, 63)
    assert (job.job.failures, job.job.paused) == (1, None)


def test_crashes_count_and_cancelled_runs_do_not() -> None:
    job = OneJob("1m", pause_after=2)
    job.at(60).claims("a")
    assert job.take_over("a") == "accepted"
    job.at(120).finish(job.claims("b"), Outcome.cancelled("a person asked"))
    assert job.job.failures == 1
    job.at(180).claims("c")
    assert job.take_over("c") == PAUSED


def test_a_resume_says_what_it_will_do_and_begins_the_count_anew() -> None:
    job = OneJob("1m", pause_after=1)
    fail_slots(job, 60)
    job.at(310)
    plan = preview_resume(job.job, now=job.now, late_for=LATE_FOR * SECOND, resolve=resolve)
    assert (plan.skipped, plan.waiting) == (4, 0)
    assert [seconds(plan.first or 0), seconds(plan.last or 0)] == [120, 300]
    job.resume()
    assert job.covered("skipped") == [(120, 300, 4)]
    assert job.job.failures == 0
    assert job.at(360).run_all() == [360]
