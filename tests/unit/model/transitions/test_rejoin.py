"""A job after the store went back: brought to what a living node remembers; what nobody remembers is written off."""

from __future__ import annotations

import copy
from typing import Any

from solocron.clock import SECOND
from solocron.model.documents.job import Hold
from solocron.model.transitions.finishing import Outcome
from solocron.model.transitions.rejoin import Remembered, rejoin, write_off
from tests.unit.model.one_job import LATE_FOR, T0, OneJob, resolve


def backup(job: OneJob) -> OneJob:
    """The job as a standby has it that hears nothing from here on."""
    return copy.deepcopy(job)


def memory(job: OneJob, hold: Hold, outcome: Outcome | None = None) -> Remembered:
    """What the node remembers of a claim, right after it."""
    found = job.job
    return Remembered(
        job="work", incarnation=found.incarnation, hold=hold, cursor=found.cursor, nominal=found.nominal,
        outcome=outcome,
    )  # fmt: skip


def put_back(job: OneJob, *memories: Remembered, session: str = "session of a") -> Any:
    return job.apply(
        lambda doc: rejoin(doc, memories, epoch="2.x", session=session, now=job.now, resolve=resolve)
    )  # fmt: skip


def statuses(job: OneJob) -> list[tuple[float, int, str]]:
    """Slots, attempts and statuses on record, in order."""
    return sorted(((r.slot - T0) / SECOND, r.attempt, str(r.status)) for r in job.log.values())


def test_a_claim_that_was_lost_is_held_again_under_its_own_fence() -> None:
    job = OneJob().at(61)
    old = backup(job)
    hold = job.claims()
    put_back(old.at(62), memory(job, hold))
    assert old.job.active == (hold,)
    assert old.job.fence >= hold.fence
    assert old.job.cursor == job.job.cursor
    assert old.claim("b") is None, "its slot is decided"
    assert old.finish(hold) == "accepted"
    assert statuses(old) == [(60, 1, "succeeded")]


def test_an_end_that_was_lost_is_on_record_again_and_the_next_attempt_is_owed() -> None:
    job = OneJob(retries=1).at(61)
    old = backup(job)
    hold = job.claims()
    put_back(old.at(62), memory(job, hold, Outcome.failed("it broke")))
    assert statuses(old) == [(60, 1, "failed")]
    again = old.at(70).claims("b")
    assert (again.run, again.attempt) == (hold.run, 2)
    assert again.fence > hold.fence


def test_a_hold_that_came_back_is_ended_as_it_ended() -> None:
    job = OneJob().at(61)
    hold = job.claims()
    old = backup(job)
    put_back(old.at(62), memory(job, hold, Outcome.succeeded()))
    assert old.job.active == ()
    assert statuses(old) == [(60, 1, "succeeded")]


def test_a_run_of_a_session_that_the_process_has_lost_counts_as_taken_over() -> None:
    job = OneJob().at(61)
    old = backup(job)
    hold = job.claims()
    put_back(old.at(62), memory(job, hold), session="a later session")
    assert old.job.active == ()
    assert statuses(old) == [(60, 1, "lost")]


def test_what_a_later_attempt_has_gone_beyond_is_recorded_and_changes_nothing() -> None:
    job = OneJob(retries=2).at(61)
    old = backup(job)
    first = job.claims()
    known = memory(job, first, Outcome.failed("it broke"))
    job.fail(first)
    second = job.at(70).claims("b")
    put_back(old.at(80), memory(job, second), session="session of b")
    put_back(old, known)
    assert old.job.active == (second,)
    assert statuses(old) == [(60, 1, "failed")]


def test_repeating_it_changes_nothing_and_neither_does_what_the_store_still_has() -> None:
    job = OneJob().at(61)
    old = backup(job)
    hold = job.claims()
    kept = memory(job, hold)
    assert put_back(job, kept) is None
    put_back(old.at(62), kept)
    before = old.doc
    assert put_back(old, kept) is None
    assert old.doc == before


def test_a_job_that_was_made_anew_is_left_alone() -> None:
    job = OneJob().at(61)
    hold = job.claims()
    kept = memory(job, hold)
    other = OneJob().at(200)
    other.remove()
    other.define("1m")
    assert other.job.incarnation != kept.incarnation
    assert put_back(other, kept) is None


def test_slots_that_lost_claims_had_passed_and_nobody_tells_of_are_lost() -> None:
    """Two slots were claimed in what was lost, one of them by a node that is gone."""
    job = OneJob(catch_up="all").at(61)
    old = backup(job)
    job.finish(job.claims("gone"))
    hold = job.at(121).claims()
    put_back(old.at(122), memory(job, hold, Outcome.succeeded()))
    old.at(181).run_all("b")
    assert statuses(old) == [(60, 0, "lost"), (120, 1, "succeeded"), (180, 1, "succeeded")]


def test_with_doubt_what_was_due_is_written_off_or_counts_as_tried() -> None:
    for retries, wanted in ((0, [(60, 0, "lost")]), (2, [(60, 1, "lost"), (60, 2, "succeeded")])):
        job = OneJob(retries=retries, catch_up="all").at(65)
        job.apply(
            lambda doc, job=job: write_off(  # type: ignore[misc]
                doc, until=job.now, late_for=LATE_FOR * SECOND, now=job.now, resolve=resolve
            )
        )
        job.at(66).run_all("b")
        assert statuses(job) == wanted
