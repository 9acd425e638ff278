"""Trigger, cancel, pause, resume: each does what was asked once, and is recognised when it is asked again."""

from __future__ import annotations

import pytest

from solocron.clock import SECOND
from solocron.model.change import Absent, Kind
from solocron.model.codec import decode, encode
from solocron.model.policy import QUEUE_LIMIT, Backoff, allow, catch_up_all
from solocron.model.refusals import Refusal, Refused
from solocron.model.timetable import Timetable
from solocron.model.transitions.commands import REMEMBERED, pause, resume, trigger
from tests.unit.model.one_job import LATE_FOR, T0, OneJob, resolve, seconds

GONE = Absent(Kind.JOB, "work")


class TestTrigger:
    def test_its_slot_is_the_instant_of_the_request(self) -> None:
        job = OneJob("1h").at(100)
        run = job.trigger("r", payload=[1])
        assert job.job.due_at == job.now
        hold = job.claims()
        assert (hold.run, seconds(hold.slot), hold.origin, hold.payload) == (run, 100, "trigger", [1])

    def test_it_leaves_the_schedule_alone(self) -> None:
        job = OneJob("1m").at(59)
        job.trigger("r")
        job.finish(job.claims())
        assert job.at(60).run_all() == [60]

    @pytest.mark.invariant("I13: a repeated request has no second effect")
    def test_the_same_request_is_the_same_run(self) -> None:
        job = OneJob("1h").at(100)
        run = job.trigger("r")
        before = job.doc
        assert job.at(200).trigger("r") == run
        assert job.doc is before
        job.run_all()
        assert job.trigger("r") == run
        assert job.claim() is None

    def test_two_requests_in_one_instant_are_two_runs(self) -> None:
        job = OneJob("1h").at(100)
        assert job.trigger("r1") != job.trigger("r2")
        assert job.run_all() == [100, 100]

    def test_a_trigger_at_the_instant_of_a_slot_is_a_run_of_its_own(self) -> None:
        job = OneJob("1m").at(60)
        job.trigger("r")
        assert job.run_all() == [60, 60]
        assert len({record.key for record in job.log.values()}) == 2

    def test_it_remembers_the_last_32_requests(self) -> None:
        job = OneJob(None)
        runs = [job.at(n).trigger(f"r{n}") for n in range(REMEMBERED)]
        job.run_all()
        assert [job.trigger(f"r{n}") for n in range(REMEMBERED)] == runs

    @pytest.mark.parametrize("held", [False, True])
    def test_one_that_is_not_over_is_recognised_even_if_its_request_was_forgotten(self, held: bool) -> None:
        """A second run of the same name would be refused by the log, and the whole document with it."""
        job = OneJob(None, overlap=allow(2))
        run = job.trigger("r", at=None if held else 500)
        if held:
            job.claims()
        for n in range(REMEMBERED):
            job.trigger(f"other {n}")
        job.run_all()
        assert job.at(400).trigger("r") == run
        assert job.at(500).run_all() == ([] if held else [500])

    def test_it_may_wait_for_its_time(self) -> None:
        job = OneJob(None)
        job.trigger("r", at=500)
        assert job.at(499.999).claim() is None
        assert job.job.due_at is not None
        assert seconds(job.job.due_at) == 500
        assert job.at(500).run_all() == [500]

    def test_a_time_that_has_passed_is_now(self) -> None:
        job = OneJob(None).at(100)
        job.trigger("r", at=50)
        assert job.run_all() == [100]

    def test_while_paused_it_runs(self) -> None:
        job = OneJob("1m").at(10)
        job.pause()
        job.trigger("r")
        assert job.run_all() == [10]
        assert job.job.paused is not None

    def test_while_disabled_it_is_refused_and_may_be_asked_again(self) -> None:
        job = OneJob("1m", enabled=False)
        before = job.doc
        assert job.trigger("r") == Refusal(Refused.DISABLED)
        assert job.doc is before
        job.define("1m")
        assert job.trigger("r") not in (None, Refusal(Refused.DISABLED))

    def test_a_full_queue_refuses_it(self) -> None:
        job = OneJob(None)
        for n in range(QUEUE_LIMIT):
            job.trigger(f"r{n}", at=1000)
        before = job.doc
        assert job.trigger("one more") == Refusal(Refused.QUEUE_FULL)
        assert job.doc is before

    def test_a_job_that_is_not_there_has_no_answer(self) -> None:
        assert trigger(GONE, request="r", payload=None, at=None, now=T0, resolve=resolve) is None

    def test_retries_of_a_trigger_run_while_paused(self) -> None:
        job = OneJob("1m", retries=1, backoff=Backoff(first="1s", jitter=0)).at(10)
        job.pause()
        job.trigger("r")
        job.fail(job.claims())
        assert job.at(11).claims().attempt == 2


class TestCancel:
    def test_a_running_one_is_only_asked_and_keeps_its_hold(self) -> None:
        job = OneJob("1m").at(60)
        hold = job.claims("a")
        assert job.cancel(hold.run, "a person asked") == "asked"
        (marked,) = job.job.active
        assert (marked.cancel, marked.fence) == ("a person asked", hold.fence)
        assert job.finish(hold) == "accepted", "the holder has the last word"

    def test_asking_twice_changes_nothing(self) -> None:
        job = OneJob("1m").at(60)
        hold = job.claims("a")
        job.cancel(hold.run, "first")
        before = job.doc
        assert job.cancel(hold.run, "second") == "asked"
        assert job.doc is before

    def test_one_that_waits_is_recorded_as_cancelled_at_once(self) -> None:
        job = OneJob("1m").at(10)
        run = job.trigger("r", at=50)
        assert run is not None
        assert job.cancel(run, "a person asked") == "cancelled"
        assert job.reasons("cancelled") == ["a person asked"]
        assert job.at(50).claim() is None
        assert job.job.due_at is not None
        assert seconds(job.job.due_at) == 60

    def test_of_one_that_waits_for_its_retry_the_failure_is_the_last_word(self) -> None:
        job = OneJob("1m", retries=1).at(60)
        hold = job.claims()
        job.fail(hold)
        assert job.cancel(hold.run) == "cancelled"
        assert job.ended() == [(60, "failed")]
        assert job.at(100).claim() is None

    def test_of_one_that_was_handed_back_it_is_recorded(self) -> None:
        """Being handed back is no outcome: the run says why it did not run after all."""
        job = OneJob("1m").at(60)
        hold = job.claims()
        job.hand_back(hold)
        job.cancel(hold.run, "a person asked")
        assert job.reasons("cancelled") == ["the node drains", "a person asked"]

    @pytest.mark.parametrize("ended", [True, False])
    def test_what_has_ended_or_never_was_cannot_be_cancelled(self, ended: bool) -> None:
        job = OneJob("1m").at(60)
        hold = job.claims()
        if ended:
            job.finish(hold)
        assert job.cancel(hold.run if ended else "work@never") is None

    def test_of_one_that_runs_the_first_request_stays_with_its_time(self) -> None:
        job = OneJob("1m").at(60)
        hold = job.claims()
        for after, why in ((70, "a person asked"), (80, "another asked too")):
            job.at(after).cancel(hold.run, why)
        (held,) = job.job.active
        assert (held.cancel, held.asked_at) == ("a person asked", T0 + 70 * SECOND)
        assert decode(Kind.JOB, "work", *encode(job.job)) == job.job


class TestPause:
    def test_nothing_starts_by_schedule_and_the_slots_are_recorded_as_skipped(self) -> None:
        job = OneJob("1m").at(30)
        job.pause(by="ada", note="release")
        assert job.at(300).claim() is None
        assert job.job.due_at is None
        job.at(330)
        assert job.resume() == "resumed"
        assert job.covered("skipped") == [(60, 300, 5)]
        assert job.reasons("skipped") == ["paused: release"]
        assert job.at(360).run_all() == [360]

    def test_who_when_why_and_until_are_on_the_document(self) -> None:
        job = OneJob("1m").at(30)
        job.pause(by="ada", note="release", until=900)
        paused = job.job.paused
        assert paused is not None
        assert paused.until is not None
        assert (paused.by, paused.note, seconds(paused.at), seconds(paused.until)) == ("ada", "release", 30, 900)

    def test_pausing_again_keeps_since_when(self) -> None:
        job = OneJob("1m").at(30)
        job.pause(note="one")
        job.at(40).pause(note="two")
        assert job.job.paused is not None
        assert (seconds(job.job.paused.at), job.job.paused.note) == (30, "two")

    def test_slots_due_before_it_are_decided_first(self) -> None:
        job = OneJob("1m", catch_up=catch_up_all()).at(130)
        job.pause()
        assert job.claim() is None
        job.at(170).resume()
        assert job.run_all() == [60, 120]
        assert job.records("skipped") == []

    def test_retries_and_queued_runs_wait_for_its_end(self) -> None:
        job = OneJob("1m", retries=1, overlap="queue", backoff=Backoff(first="1s")).at(60)
        hold = job.claims()
        job.at(120).claim()
        job.pause()
        job.fail(hold)
        assert job.at(150).claim() is None
        assert job.job.due_at is None
        job.resume()
        assert job.run_all() == [60, 120]

    def test_what_runs_may_finish(self) -> None:
        job = OneJob("1m").at(60)
        hold = job.claims()
        job.pause()
        assert job.finish(hold) == "accepted"

    def test_it_ends_by_itself_at_its_hour(self) -> None:
        job = OneJob("1m").at(30)
        job.pause(until=150)
        assert job.job.due_at is not None
        assert seconds(job.job.due_at) == 150
        assert job.at(149).claim() is None
        job.at(180)
        assert job.run_all() == [180]
        assert job.covered("skipped") == [(60, 120, 2)]
        assert job.job.paused is None

    @pytest.mark.invariant("I20: there is no storm of starts")
    def test_at_its_very_hour_it_has_ended(self) -> None:
        """It is due then, so a claim that left it as it is would be made again at once, forever."""
        job = OneJob("1m").at(30)
        job.pause(until=150)
        assert job.at(150).claim() is None
        assert job.job.paused is None
        assert job.job.due_at is not None
        assert seconds(job.job.due_at) == 180

    def test_slots_after_its_end_are_late_or_missed_like_any_others(self) -> None:
        job = OneJob("1m", catch_up="skip").at(30)
        job.pause(until=150)
        job.at(300 + LATE_FOR)
        job.run_all()
        assert job.covered("skipped") == [(60, 120, 2)]
        assert job.covered("missed") == [(180, 300, 3)]

    def test_resuming_late_skips_only_up_to_its_hour(self) -> None:
        job = OneJob("1m").at(30)
        job.pause(until=130)
        job.at(190).resume()
        assert job.covered("skipped") == [(60, 120, 2)]
        assert job.run_all() == [180]

    def test_resuming_what_is_not_paused_changes_nothing(self) -> None:
        job = OneJob("1m")
        before = job.doc
        assert job.resume() == "was not paused"
        assert job.doc is before

    def test_a_job_that_is_not_there_cannot_be_paused_or_resumed(self) -> None:
        assert pause(GONE, by=None, note=None, until=None, now=T0, late_for=1, resolve=resolve) is None
        assert resume(GONE, now=T0, resolve=resolve) is None

    def test_pausing_again_where_the_schedule_is_unknown_forgets_no_slot_of_a_pause_that_has_ended(self) -> None:
        job = OneJob("1m").at(30)
        job.pause(until=150)
        job.at(200)
        job.by = lambda spec: Timetable(None, known=False)
        job.pause()
        job.by = resolve
        job.at(260).resume()
        assert job.covered("skipped") == [(60, 240, 4)]

    def test_resuming_where_the_schedule_is_unknown_leaves_the_record_to_a_node_that_knows_it(self) -> None:
        """The command line has no code of the user's: the slots of the pause must not vanish for that."""
        job = OneJob("1m").at(30)
        job.pause(note="release")
        job.at(200)
        job.by = lambda spec: Timetable(None, known=False)
        assert job.resume() == "resumed"
        assert job.job.due_at is not None
        assert job.job.due_at <= job.now, "a node looks at once"
        job.by = resolve
        job.at(201)
        assert job.run_all() == []
        assert job.covered("skipped") == [(60, 180, 3)]
        assert job.job.paused is None
