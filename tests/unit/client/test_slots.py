"""Every slot of a schedule has a fate, and the fates add up to the slots that came due."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from solocron import InvalidError
from solocron.stores.contract import Query
from tests.unit.client.kit import FAILS, LOOKS, Stage


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_slots_that_ran_and_slots_to_come(stage: Stage) -> None:
    stage.hours(3)
    assert stage.statuses(ahead=2) == ["succeeded"] * 3 + ["to come"] * 2
    first = stage.slots()[0]
    assert (first.attempts, first.origin, first.reason) == (1, "schedule", None)
    assert first.run is not None
    assert first.late_s is not None
    assert first.took_s is not None


def test_a_slot_that_failed_waits_for_its_retry_and_counts_its_attempts(stage: Stage) -> None:
    FAILS.add(1)
    stage.hours(1)
    assert [(one.status, one.attempts) for one in stage.slots()] == [("waiting", 1)]
    stage.clock.advance("5m")
    stage.scheduler.tick()
    assert [(one.status, one.attempts) for one in stage.slots()] == [("succeeded", 2)]


def test_a_slot_whose_body_runs_is_running(stage: Stage) -> None:
    seen: list[list[str]] = []
    LOOKS.append(lambda: seen.append(stage.statuses()))
    stage.hours(1)
    assert seen == [["running"]]


def test_slots_that_did_not_run_say_why(stage: Stage) -> None:
    stage.clock.advance("3h")
    stage.scheduler.tick()
    stage.scheduler.pause("work", by="ana", note="schema move")
    stage.clock.advance("2h")
    stage.scheduler.resume("work")
    stage.hours(1)
    found = stage.slots()
    assert {one.status for one in found[:2]} == {"missed"}
    assert [one.status for one in found[3:5]] == ["skipped", "skipped"]
    assert all(one.reason and one.run is None for one in (*found[:2], *found[3:5]))


def test_a_slot_that_no_node_has_decided_yet_is_due(stage: Stage) -> None:
    stage.clock.advance("2h")
    assert stage.statuses() == ["due", "due"]


def test_slots_from_before_the_job_was_defined_are_no_debt(stage: Stage) -> None:
    found = stage.client.slots("work", stage.begin - timedelta(hours=2), stage.begin)
    assert [one.status for one in found] == ["not defined", "not defined"]


def test_a_record_that_is_gone_is_noticed(stage: Stage) -> None:
    stage.hours(3)
    lost = stage.store.history(Query()).records[1]
    stage.store.remove([(lost.run, lost.attempt)])
    assert stage.statuses() == ["succeeded", "unaccounted", "succeeded"]
    found = stage.client.accounting(stage.begin)
    assert (found.due, found.counts) == (3, {"succeeded": 2, "unaccounted": 1})
    assert [job for job, _ in found.unaccounted] == ["work"]


def test_the_accounting_adds_up(stage: Stage) -> None:
    FAILS.add(2)
    stage.hours(1)
    stage.clock.advance("3h")
    stage.scheduler.tick()
    found = stage.client.accounting(stage.begin)
    assert found.due == sum(found.counts.values()) == 4
    assert (found.unaccounted, found.jobs, found.left_out) == ((), 1, {})
    assert stage.client.accounting(stage.begin, "work") == found


def test_a_rerun_counts_more_than_what_it_repeats(stage: Stage) -> None:
    stage.hours(1)
    (slot,) = stage.slots()
    stage.scheduler.rerun("work", slot=slot.slot)
    stage.scheduler.tick()
    (again,) = stage.slots()
    assert (again.status, again.origin, again.attempts) == ("succeeded", "rerun", 2)


def test_bad_spans_are_refused(stage: Stage) -> None:
    with pytest.raises(InvalidError, match="no time zone"):
        stage.client.slots("work", datetime(2026, 1, 1), stage.clock.now)  # noqa: DTZ001 - that is the point
    with pytest.raises(InvalidError, match="more than 2000"):
        stage.client.slots("work", stage.begin, stage.begin + timedelta(hours=2_001))
    with pytest.raises(InvalidError, match="no time zone"):
        stage.client.accounting(datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point
