"""Claim decides every slot up to now and holds at most one run; one commit moves the cursor and records the run."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from solocron.clock import MILLISECOND, SECOND, from_us
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import Origin, job_of, run_id
from solocron.model.policy import allow, catch_up_all
from solocron.model.timetable import Timetable
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import claim
from solocron.schedules import At
from tests.unit.model.one_job import T0, OneJob, resolve, seconds

WHO = Claimant(session="s", node="n", late_for=25 * SECOND)


def test_a_missing_document_is_nobodys_to_claim() -> None:
    assert claim(Absent(Kind.JOB, "work"), now=T0, by=WHO, resolve=resolve) is None


def test_before_its_instant_a_slot_is_not_claimed() -> None:
    job = OneJob("1m").at(59.999)
    before = job.doc
    assert job.claim() is None
    assert job.doc is before


def test_at_its_instant_it_is_claimed_and_nothing_is_recorded_yet() -> None:
    job = OneJob("1m", timeout=30).at(60)
    hold = job.claims("a")
    assert (seconds(hold.slot), hold.attempt, hold.tries, hold.node) == (60, 1, 0, "a")
    assert hold.deadline is not None
    assert seconds(hold.deadline) == 90
    assert job.job.cursor == hold.slot
    assert job.job.active == (hold,)
    assert job_of(hold.run) == "work"
    assert job.log == {}


def test_a_job_without_a_timeout_has_no_deadline() -> None:
    assert OneJob("1m").at(60).claims().deadline is None


def test_a_second_node_in_the_same_instant_gets_nothing() -> None:
    job = OneJob("1m").at(60)
    job.claims("a")
    before = job.doc
    assert job.claim("b") is None
    assert job.doc is before


def test_the_next_due_instant_is_the_next_slot() -> None:
    job = OneJob("1m").at(60)
    job.finish(job.claims())
    assert job.job.due_at is not None
    assert seconds(job.job.due_at) == 120


def test_a_one_shot_is_never_due_again() -> None:
    job = OneJob(At(moment(90)))
    assert job.job.due_at is not None
    assert seconds(job.job.due_at) == 90
    assert job.at(90).run_all() == [90]
    assert job.job.due_at is None


def test_a_job_without_a_schedule_is_never_due() -> None:
    job = OneJob(None)
    assert job.job.due_at is None
    assert job.at(100_000).claim() is None


def test_a_schedule_that_only_code_can_tell_is_left_to_a_node_that_has_it() -> None:
    """A node without the class decides nothing, and leaves the document due so that another looks."""
    job = OneJob("1m", by=lambda spec: Timetable(None, known=False)).at(60)
    assert job.job.due_at is not None
    assert job.job.due_at <= job.now
    before = job.doc
    assert job.claim() is None
    assert job.doc is before
    job.by = resolve
    assert seconds(job.claims().slot) == 60


@pytest.mark.invariant("I3: the fences of a job only grow")
def test_the_fence_is_at_least_the_stores_milliseconds_and_always_grows() -> None:
    job = OneJob("1s", overlap=allow(100))
    fences = []
    for second in (1, 2, 2.0001, 3):
        job.at(second)
        job.trigger(f"r{second}")
        while (hold := job.claim()) is not None:
            fences.append(hold.fence)
            assert hold.fence >= job.now // MILLISECOND
    assert len(fences) > 4
    assert fences == sorted(set(fences))


@pytest.mark.invariant("I3: the fences of a job only grow")
def test_the_fence_grows_also_when_the_stores_clock_steps_back() -> None:
    job = OneJob("1m").at(60)
    first = job.claims()
    job.finish(first)
    job.at(30)
    job.trigger("r")
    assert job.claims().fence == first.fence + 1


@pytest.mark.invariant("I15: nothing starts early by the store's clock")
def test_a_store_clock_that_steps_back_fires_nothing_again() -> None:
    job = OneJob("1m").at(60)
    job.finish(job.claims())
    assert job.at(0).claim() is None
    assert job.at(60).claim() is None
    assert job.at(119).claim() is None
    assert seconds(job.at(120).claims().slot) == 120


@pytest.mark.invariant("I15: nothing starts early by the store's clock")
def test_what_waits_does_not_start_early_when_the_stores_clock_steps_back() -> None:
    job = OneJob("5s", overlap="queue-all").at(5)
    running = job.claims("a")
    job.at(20).claim("b")
    job.at(12).finish(running)
    assert job.run_all("b") == [10]
    assert job.at(20).run_all("b") == [15, 20]


def test_slots_are_taken_one_by_one_and_in_order() -> None:
    job = OneJob("1m", catch_up="all").at(300)
    assert job.run_all() == [60, 120, 180, 240, 300]


def test_a_retry_comes_before_slots_and_slots_before_later_triggers() -> None:
    job = OneJob("1m", catch_up="all", retries=1, on_crash="retry").at(130)
    first = job.claims("a")
    job.trigger("r")
    job.take_over("a")
    order = []
    while (hold := job.claim("b")) is not None:
        order.append((seconds(hold.slot), hold.attempt))
        job.finish(hold)
    assert seconds(first.slot) == 60
    assert order == [(60, 2), (120, 1), (130, 1)]


def test_a_runs_name_follows_from_its_slot_whether_it_waited_alone_or_in_line() -> None:
    """So that a slot decided twice by mistake would be refused by the log."""
    alone = OneJob("1m", catch_up="all").at(60)
    in_line = OneJob("1m", catch_up="all").at(300)
    assert in_line.claims().run == alone.claims().run == run_id("work", T0, Origin.SCHEDULE, T0 + 60 * SECOND)


def test_a_due_document_that_gives_nothing_to_run_is_not_due_any_more() -> None:
    """Else the same document would head every selection and starve the rest."""
    job = OneJob("1m", overlap="skip").at(60)
    job.claims("a")
    assert job.at(120).claim("b") is None
    assert job.records("skipped")
    assert job.job.due_at is not None
    assert seconds(job.job.due_at) == 180


def test_what_waited_longer_than_start_within_is_missed_when_its_turn_comes() -> None:
    job = OneJob("1m", overlap="queue", start_within=30).at(60)
    running = job.claims("a")
    job.at(120)
    assert job.claim("b") is None
    job.at(151)
    job.finish(running)
    assert job.claim("b") is None
    assert job.reasons("missed") == ["waited longer than start_within"]
    assert job.covered("missed") == [(120, 120, 1)]


def test_what_waited_exactly_start_within_still_starts() -> None:
    job = OneJob("1m", overlap="queue", start_within=30).at(60)
    running = job.claims("a")
    job.at(120).claim("b")
    job.at(150).finish(running)
    assert seconds(job.claims("b").slot) == 120


def test_start_within_does_not_end_retries_or_triggers() -> None:
    job = OneJob("1h", retries=1, start_within=1).at(3600)
    job.claims("a")
    job.at(3620).take_over("a")
    assert job.claims("b").attempt == 2
    job.trigger("r")
    job.take_over("b")
    assert job.at(3900).claims("c").origin == "trigger"


def test_start_within_still_counts_for_a_run_that_was_handed_back() -> None:
    """Its body never started, so it is as late as any other."""
    job = OneJob("1m", start_within=30).at(60)
    job.hand_back(job.claims("a"))
    assert job.at(91).claim("b") is None
    assert job.covered("missed") == [(60, 60, 1)]


def test_a_claim_hands_on_what_it_does_not_know() -> None:
    job = OneJob("1m").at(60)
    job.doc = replace(job.job, extra={"later": [1, 2]})
    job.claims()
    assert job.job.extra == {"later": [1, 2]}


def test_a_claim_hands_on_the_very_definition_it_read() -> None:
    """Stores compare by identity to leave the rarely written part alone."""
    job = OneJob("1m").at(60)
    before = job.job.definition
    job.claims()
    assert job.job.definition is before


@pytest.mark.parametrize("years", [1, 30])
def test_a_long_outage_of_a_job_every_second_costs_a_few_records(years: int) -> None:
    job = OneJob("1s", catch_up=catch_up_all(limit=3)).at(years * 365 * 86_400)
    change = claim(job.job, now=job.now, by=WHO, resolve=resolve)
    assert isinstance(change, Change)
    assert isinstance(change.doc, Job)
    assert len(change.records) == 1
    assert change.records[0].count == years * 365 * 86_400 - 25 - 3
    assert change.doc.waiting == 25 + 3 - 1


def moment(after: float) -> datetime:
    """The datetime that many seconds after T0."""
    return from_us(T0 + round(after * SECOND))
