"""What becomes of a slot that falls due while an earlier run still runs, or waits for its next attempt."""

from __future__ import annotations

import pytest

from solocron.model.policy import QUEUE_LIMIT, Backoff, allow
from tests.unit.model.one_job import OneJob, seconds


def started(job: OneJob, node: str) -> float | None:
    hold = job.claim(node)
    return None if hold is None else seconds(hold.slot)


class TestSkip:
    def test_a_slot_is_skipped_while_a_run_runs_and_says_who_runs_it(self) -> None:
        job = OneJob("1m", overlap="skip").at(60)
        running = job.claims("a")
        assert started(job.at(120), "b") is None
        assert job.covered("skipped") == [(120, 120, 1)]
        assert job.reasons("skipped") == [f"overlap: {running.run} still runs on a"]

    def test_it_is_asked_at_the_moment_of_decision(self) -> None:
        """A slot that fell due while something ran, but is decided after that has ended, is only late."""
        job = OneJob("1m", overlap="skip").at(60)
        running = job.claims("a")
        job.at(121).finish(running)
        assert started(job, "b") == 120

    def test_several_slots_are_skipped_as_one_record(self) -> None:
        job = OneJob("5s", overlap="skip").at(5)
        job.claims("a")
        job.at(20).claim("b")
        assert job.covered("skipped") == [(10, 20, 3)]

    def test_a_run_that_waits_for_its_retry_counts_as_running(self) -> None:
        job = OneJob("1m", overlap="skip", retries=1, backoff=Backoff(first="5m", cap="5m", jitter=0)).at(60)
        job.fail(job.claims("a"))
        assert started(job.at(120), "b") is None
        assert job.reasons("skipped") == ["overlap: an earlier run waits for its next attempt"]

    def test_a_run_that_was_handed_back_does_not(self) -> None:
        job = OneJob("1m", overlap="skip").at(60)
        job.hand_back(job.claims("a"))
        job.at(120)
        assert started(job, "b") == 60
        assert job.records("skipped") == []


class TestQueue:
    def test_one_slot_waits_and_the_others_are_skipped(self) -> None:
        job = OneJob("1m", overlap="queue").at(60)
        running = job.claims("a")
        for second in (120, 180, 240):
            assert started(job.at(second), "b") is None
        assert job.covered("skipped") == [(180, 180, 1), (240, 240, 1)]
        assert set(job.reasons("skipped")) == {"overlap: one run is waiting already"}
        job.finish(running)
        assert job.run_all("b") == [120]

    def test_slots_decided_together_leave_the_first_waiting(self) -> None:
        job = OneJob("5s", overlap="queue").at(5)
        running = job.claims("a")
        job.at(25).claim("b")
        assert job.covered("skipped") == [(15, 25, 3)]
        job.finish(running)
        assert job.run_all("b") == [10]

    def test_a_trigger_that_waits_for_its_own_time_does_not_take_the_place(self) -> None:
        job = OneJob("1m", overlap="queue").at(60)
        running = job.claims("a")
        job.trigger("tomorrow", at=86_400)
        job.at(120).claim("b")
        assert job.records("skipped") == []
        job.finish(running)
        assert job.run_all("b") == [120]

    def test_what_is_queued_waits_also_for_a_retry(self) -> None:
        """A run that waits for its next attempt counts as running, and slots keep their order."""
        job = OneJob("1m", overlap="queue", retries=1, backoff=Backoff(first="70s", jitter=0)).at(60)
        failing = job.claims("a")
        assert started(job.at(120), "b") is None
        job.fail(failing)
        assert started(job, "b") is None
        assert job.job.due_at is not None
        assert seconds(job.job.due_at) == 180, "the next thing to decide is the slot of 180, not the one that waits"
        job.at(190)
        assert job.run_all("b") == [60, 120]
        assert job.covered("skipped") == [(180, 180, 1)]


class TestQueueAll:
    def test_every_slot_waits_and_runs_in_order(self) -> None:
        job = OneJob("1m", overlap="queue-all").at(60)
        running = job.claims("a")
        for waiting, second in enumerate((120, 180, 240), 1):
            assert started(job.at(second), "b") is None
            assert job.job.waiting == waiting
        job.finish(running)
        assert job.run_all("b") == [120, 180, 240]
        assert job.records("skipped") == []

    def test_a_thousand_wait_and_what_comes_after_is_dropped(self) -> None:
        job = OneJob("1s", overlap="queue-all").at(1)
        running = job.claims("a")
        for second in range(20, 1100, 20):
            job.at(second).claim("b")
        assert job.job.waiting == QUEUE_LIMIT
        assert sum(record.count for record in job.records("dropped")) == 1080 - 1 - QUEUE_LIMIT
        assert job.covered("dropped")[0][0] == 1002
        assert set(job.reasons("dropped")) == {"1000 runs are waiting"}
        job.finish(running)
        assert job.run_all("b") == list(range(2, 1002))

    @pytest.mark.parametrize("published", [False, True], ids=["being handed over", "handed over"])
    def test_what_a_carrier_has_takes_no_place_in_the_queue(self, published: bool) -> None:
        job = OneJob("1s", overlap="queue-all", run_in="queue", hand_over={}).at(1)
        ticket = job.claims("a")
        if published:
            job.hand_over(ticket, pickup=3600)
        for second in range(20, 1100, 20):
            job.at(second).claim("b")
        assert job.job.queued == QUEUE_LIMIT
        assert job.covered("dropped")[0][0] == 1002

    def test_a_full_queue_still_has_a_place_for_the_retry(self) -> None:
        job = OneJob("1s", overlap="queue-all", retries=1).at(1)
        job.claims("a")
        for second in range(20, 1100, 20):
            job.at(second).claim("b")
        job.take_over("a")
        retry = job.claims("b")
        assert (seconds(retry.slot), retry.attempt) == (1, 2)
        assert job.job.waiting == QUEUE_LIMIT

    def test_the_whole_queue_is_one_short_line(self) -> None:
        job = OneJob("1s", overlap="queue-all").at(1)
        job.claims("a")
        for second in range(20, 1000, 20):
            job.at(second).claim("b")
        assert len(job.job.waiting_ranges) == 1
        assert job.job.waiting_runs == ()


class TestReplace:
    def test_the_running_one_is_only_asked_to_stop_and_the_new_one_waits_for_it(self) -> None:
        job = OneJob("1m", overlap="replace").at(60)
        old = job.claims("a")
        assert started(job.at(120), "b") is None
        (hold,) = job.job.active
        assert hold.fence == old.fence
        assert hold.cancel == "overlap: replaced by a later slot"
        job.finish(old)
        assert job.run_all("b") == [120]

    def test_it_starts_when_the_old_ones_session_is_dead(self) -> None:
        job = OneJob("1m", overlap="replace", retries=3).at(60)
        job.claims("a")
        job.at(120).claim("b")
        job.take_over("a")
        assert job.run_all("b") == [120]
        assert job.ended() == [(60, "lost"), (120, "succeeded")], "what was replaced is not tried again"

    def test_a_later_slot_replaces_the_one_that_waits(self) -> None:
        job = OneJob("1m", overlap="replace").at(60)
        old = job.claims("a")
        job.at(120).claim("b")
        job.at(180).claim("b")
        assert job.covered("skipped") == [(120, 120, 1)]
        job.finish(old)
        assert job.run_all("b") == [180]

    def test_of_slots_decided_together_the_newest_runs(self) -> None:
        job = OneJob("5s", overlap="replace").at(20)
        assert job.run_all() == [20]
        assert job.covered("skipped") == [(5, 15, 3)]

    def test_a_waiting_retry_is_given_up_with_its_failure_as_the_last_word(self) -> None:
        job = OneJob("1m", overlap="replace", retries=3, backoff=Backoff(first="5m")).at(60)
        job.fail(job.claims("a"))
        job.at(120)
        assert job.run_all("b") == [120]
        assert job.job.waiting_runs == ()
        assert job.ended() == [(60, "failed"), (120, "succeeded")]

    def test_what_a_person_asked_for_is_not_replaced_while_it_waits(self) -> None:
        job = OneJob("1m", overlap="replace").at(60)
        old = job.claims("a")
        job.at(70)
        job.trigger("r")
        job.at(120).claim("b")
        job.finish(old)
        assert job.run_all("b") == [70, 120]

    def test_one_that_was_replaced_before_its_body_started_does_not_come_back(self) -> None:
        job = OneJob("1m", overlap="replace").at(60)
        old = job.claims("a")
        job.at(120).claim("b")
        job.hand_back(old)
        assert job.run_all("b") == [120]


class TestAllow:
    def test_n_run_at_once_and_further_slots_are_skipped(self) -> None:
        job = OneJob("1m", overlap=allow(2))
        assert started(job.at(60), "a") == 60
        assert started(job.at(120), "b") == 120
        assert started(job.at(180), "c") is None
        assert job.reasons("skipped") == ["overlap: 2 runs still run"]

    def test_each_ends_by_its_own_fence(self) -> None:
        job = OneJob("1m", overlap=allow(2))
        first = job.at(60).claims("a")
        second = job.at(120).claims("b")
        assert job.finish(first) == "accepted"
        assert job.finish(second) == "accepted"

    def test_a_waiting_retry_takes_one_of_the_n_places(self) -> None:
        job = OneJob("1m", overlap=allow(2), retries=1, backoff=Backoff(first="5m", cap="5m", jitter=0))
        job.fail(job.at(60).claims("a"))
        assert started(job.at(120), "b") == 120
        assert started(job.at(180), "c") is None

    def test_lowering_n_stops_nothing_and_starts_nothing_until_there_is_room(self) -> None:
        job = OneJob("1m", overlap=allow(3))
        holds = [job.at(60 * n).claims(f"n{n}") for n in (1, 2, 3)]
        job.define("1m", overlap="queue")
        job.at(240).claim("x")
        for hold in holds:
            assert started(job, "x") is None
            job.finish(hold)
        assert started(job, "x") == 240


@pytest.mark.invariant("I9: no more run at once than may")
@pytest.mark.parametrize("overlap", ["skip", "queue", "queue-all", "replace", allow(1)])
def test_a_trigger_waits_for_the_run_that_runs(overlap: object) -> None:
    job = OneJob("1m", overlap=overlap).at(60)
    running = job.claims("a")
    job.at(70)
    job.trigger("r")
    assert started(job, "b") is None
    job.finish(running)
    assert started(job, "b") == 70


def test_a_trigger_need_not_wait_for_a_retry() -> None:
    """A person asked for it now; only what really runs stands in its way."""
    job = OneJob("1h", retries=1, backoff=Backoff(first="5m", cap="5m")).at(3600)
    job.fail(job.claims("a"))
    job.at(3610)
    job.trigger("r")
    assert started(job, "b") == 3610
