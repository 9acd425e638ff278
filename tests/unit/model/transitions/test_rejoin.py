"""A job after the store went back: brought to what a living node remembers; the rest is written off."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from solocron.clock import SECOND
from solocron.model.documents.job import Hold
from solocron.model.transitions.finishing import Outcome
from solocron.model.transitions.offering import Dropped, Handed
from solocron.model.transitions.registration import move_to_now
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


def writes_off(job: OneJob) -> None:
    """Write off what was due by now, as a node that opens with doubt does."""
    job.apply(lambda doc: write_off(doc, until=job.now, late_for=LATE_FOR * SECOND, now=job.now, resolve=resolve))


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


def test_an_end_that_was_lost_is_on_record_again_and_the_next_attempt_waits() -> None:
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
        writes_off(job)
        job.at(66).run_all("b")
        assert statuses(job) == wanted


def test_after_restored_nothing_is_put_back_behind_a_hold() -> None:
    """The next attempt waited, and started a second time: nothing before now may run again."""
    job = OneJob(retries=3).at(61)
    job.claims("a")
    old = backup(job)
    job.at(62).take_over("a")
    hold = job.at(63).claims("b")
    old.at(125).apply(lambda doc: move_to_now(doc, fence=(T0 + 300 * SECOND) // 1000, now=old.now, resolve=resolve))
    put_back(old.at(126), memory(job, hold, Outcome.failed("it broke")), session="session of b")
    assert [one.attempt for one in old.job.active] == [1]
    assert old.job.waiting_runs == ()


def test_what_waits_behind_a_hold_is_written_off_too() -> None:
    """A node ended the hold and started what waited; both commits are lost, and the node died."""
    job = OneJob(overlap="queue").at(61)
    job.claims("a")
    job.at(121).claim("b")
    assert [one.slot for one in job.job.waiting_runs] == [T0 + 120 * SECOND]
    writes_off(job.at(130))
    assert job.job.waiting_runs == ()
    assert (120, 0, "lost") in statuses(job)


def test_what_waits_behind_a_hold_of_a_paused_job_is_left_alone() -> None:
    job = OneJob(overlap="queue").at(61)
    job.claims("a")
    job.at(121).claim("b")
    job.pause()
    writes_off(job.at(130))
    assert [one.slot for one in job.job.waiting_runs] == [T0 + 120 * SECOND]


def test_what_is_written_off_leaves_a_hold_that_a_later_attempt_had_replaced() -> None:
    """The node of the later attempt comes between the write-off and the opening: its attempt must not come again."""
    job = OneJob(retries=3).at(61)
    job.claims("a")
    old = backup(job)
    job.at(62).take_over("a")
    hold = job.at(63).claims("b")
    writes_off(old.at(125))
    put_back(old.at(126), memory(job, hold, Outcome.failed("it broke")), session="session of b")
    assert old.job.active == ()
    assert statuses(old)[:2] == [(60, 1, "lost"), (60, 2, "failed")]
    assert [one.attempt for one in old.job.waiting_runs if one.run == hold.run] == [3]


class TestHandedOver:
    """A run behind a queue: the node that published and the worker that picked up remember the same attempt."""

    def picked_up(self) -> tuple[OneJob, OneJob, OneJob, Hold, Hold]:
        """The job before the claim, while its node publishes, and with the hold of a worker that was faster."""
        job = OneJob(run_in="queue", hand_over={}, retries=1).at(61)
        before = backup(job)
        ticket = job.claims("a")
        publishing = backup(job)
        return before, publishing, job, ticket, job.picks_up(ticket, "w")

    def test_a_pick_up_that_was_lost_takes_the_place_of_the_hand_over(self) -> None:
        _, old, job, ticket, hold = self.picked_up()
        assert old.job.active == (ticket,)
        put_back(old.at(62), memory(job, hold), session="session of w")
        assert old.job.active == (hold,)
        assert old.job.waiting_runs == ()
        assert old.hand_over(ticket) is Handed.OVERTAKEN
        assert old.pick_up(ticket, "v") is Dropped.STALE

    def test_an_end_that_was_lost_ends_the_hand_over_as_well(self) -> None:
        """Otherwise the node would leave an offer for an attempt that has ended, beside the next one."""
        _, old, job, ticket, hold = self.picked_up()
        put_back(old.at(62), memory(job, hold, Outcome.failed("it broke")), session="session of w")
        assert old.job.active == ()
        assert [(one.attempt, one.offer) for one in old.job.waiting_runs] == [(2, None)]
        assert statuses(old) == [(60, 1, "failed")]
        assert old.hand_over(ticket) is Handed.OVERTAKEN

    @pytest.mark.parametrize("handed_over", [False, True])
    @pytest.mark.parametrize("node_first", [False, True])
    def test_whichever_of_them_tells_first(self, node_first: bool, handed_over: bool) -> None:
        """The node may go on with its hand-over meanwhile: it is no claim."""
        old, publishing, job, ticket, hold = self.picked_up()
        told = [
            (memory(publishing, ticket), "session of a"),
            (memory(job, hold), "session of w"),
        ]
        old.at(62)
        for one, session in told if node_first else reversed(told):
            put_back(old, one, session=session)
            if handed_over and one.hold is ticket:
                old.hand_over(ticket)
        assert old.job.active == (hold,)
        assert old.job.waiting_runs == ()
        assert old.pick_up(ticket, "v") is Dropped.STALE
        put_back(old, told[1][0], session="session of w")
        assert old.job.active == (hold,), "repeated, it changes nothing"

    def test_a_later_hand_over_takes_the_place_of_an_earlier_one(self) -> None:
        job = OneJob(run_in="queue", hand_over={}).at(61)
        first = job.claims("a")
        old = backup(job)
        job.put_back(first)
        second = job.at(63).claims("b")
        put_back(old.at(64), memory(job, second), session="session of b")
        assert old.job.active == (second,)
        assert old.log == {}
