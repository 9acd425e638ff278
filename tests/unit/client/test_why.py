"""A question that is asked at three in the morning gets one sentence, and the facts behind it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from solocron import InvalidError
from solocron.clock import SECOND
from solocron.model.documents.session import RefusedEnd, SelfReport
from solocron.stores.contract import Query
from solocron.testing.conformance.kit import put, session
from solocron.views import WhyView
from tests.unit.client.kit import FAILS, Stage


@pytest.fixture
def stage() -> Stage:
    return Stage()


def facts(found: WhyView) -> str:
    return "\n".join(fact.what for fact in found.facts)


def test_a_slot_that_ran_names_its_attempts(stage: Stage) -> None:
    FAILS.add(1)
    stage.hours(1)
    slot = stage.clock.now
    stage.clock.advance("5m")
    stage.scheduler.tick()
    found = stage.client.why("work", slot)
    assert (found.status, found.slot) == ("succeeded", slot)
    assert "in 2 attempts" in found.verdict
    assert "the schedule has this slot" in facts(found)
    assert "attempt 1 of" in facts(found)
    assert "failed" in facts(found)


def test_another_instant_finds_the_slot_before_it_and_says_so(stage: Stage) -> None:
    stage.hours(1)
    found = stage.client.why("work", stage.clock.now + timedelta(minutes=20))
    assert found.slot == stage.clock.now
    assert "has no slot at 2026-01-01T01:20:00Z; this is the last before, the next is 2026-01-01T02:00:00Z" in facts(
        found
    )


def test_a_slot_that_was_skipped_has_its_reason_in_the_verdict(stage: Stage) -> None:
    stage.scheduler.pause("work", by="ana", note="schema move")
    stage.clock.advance("3h")
    stage.scheduler.resume("work")
    stage.scheduler.tick()
    found = stage.client.why("work", stage.begin + timedelta(hours=1))
    assert found.status == "skipped"
    assert "did not run its slot 2026-01-01T01:00:00Z; it was skipped: " in found.verdict


def test_a_slot_that_is_due_says_what_keeps_it(stage: Stage) -> None:
    stage.scheduler.pause("work", by="ana", note="schema move")
    stage.clock.advance("1h")
    found = stage.client.why("work", stage.clock.now)
    assert found.status == "due"
    assert "paused by ana until it is resumed: schema move" in facts(found)
    assert "no live node of pool 'default' has its handler" in facts(found)


def test_a_missed_slot_that_was_rerun_has_succeeded(stage: Stage) -> None:
    stage.clock.advance("3h")
    stage.scheduler.tick()
    slot = stage.begin + timedelta(hours=1) - timedelta(seconds=1)
    assert stage.client.why("work", slot).status == "missed"
    stage.scheduler.rerun("work", slot=slot)
    stage.scheduler.tick()
    assert stage.client.why("work", slot).status == "succeeded"


def test_a_slot_that_failed_says_until_when_it_waits(stage: Stage) -> None:
    FAILS.add(1)
    stage.hours(1)
    slot = stage.clock.now
    assert stage.client.why("work", slot).status == "waiting"
    assert "may start from" in facts(stage.client.why("work", slot))


def test_a_slot_that_is_nowhere_is_called_so(stage: Stage) -> None:
    stage.hours(2)
    lost = stage.store.history(Query()).records[0]
    stage.store.remove([(lost.run, lost.attempt)])
    found = stage.client.why("work", stage.clock.now)
    assert found.status == "unaccounted"
    assert "pruned (nodes keep records for 30 days), or it is lost, which is a bug" in found.verdict


def test_slots_to_come_and_from_before_the_job_was_there(stage: Stage) -> None:
    ahead = stage.client.why("work", stage.clock.now + timedelta(hours=5))
    assert (ahead.status, "is to come" in ahead.verdict) == ("to come", True)
    before = stage.client.why("work", stage.clock.now - timedelta(hours=5))
    assert (before.status, "none of its own" in before.verdict) == ("not defined", True)
    assert "the job was first registered, after the slot" in facts(before)


def test_an_instant_without_a_zone_is_refused(stage: Stage) -> None:
    with pytest.raises(InvalidError, match="no time zone"):
        stage.client.why("work", datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point


def test_a_result_that_came_too_late_is_told_with_the_node_that_sent_it(stage: Stage) -> None:
    stage.hours(1)
    (record,) = stage.store.history(Query()).records
    end = RefusedEnd(run=record.run, fence=7, at=record.recorded_at + 1, outcome="failed")
    frozen = session("frozen", expires_at=record.recorded_at + SECOND)
    put(stage.store, replace(frozen, node="worker-c", report=SelfReport(refused=(end,))))
    assert "worker-c came too late with fence 7: its end (failed) was refused" in facts(
        stage.client.why("work", stage.clock.now)
    )
