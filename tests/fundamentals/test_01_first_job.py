"""A job is a function with a schedule. Its instants are called slots, and each slot runs once."""

from __future__ import annotations

from datetime import UTC, datetime

from solocron import Run, cron
from solocron.testing.clock import ManualClock

SUNDAY_NOON = datetime(2027, 1, 3, 12, tzinfo=UTC)
MONDAY_AT_NINE = datetime(2027, 1, 4, 9, tzinfo=UTC)


@cron("0 9 * * MON-FRI", tz="UTC")
def report(run: Run) -> str:
    return f"report of {run.slot:%A}"


def test_nothing_runs_before_its_slot() -> None:
    clock = ManualClock(SUNDAY_NOON)
    scheduler = clock.scheduler(report)
    assert scheduler.tick() == []  # the first tick registers the job
    clock.advance("20h")
    assert scheduler.tick() == []


def test_a_slot_runs_when_it_is_due_and_its_outcome_is_on_record() -> None:
    clock = ManualClock(SUNDAY_NOON)
    scheduler = clock.scheduler(report)
    scheduler.tick()
    clock.move_to(MONDAY_AT_NINE)
    (run,) = scheduler.tick()
    assert (run.slot, run.status, run.result) == (MONDAY_AT_NINE, "succeeded", "report of Monday")
    assert [known.status for known in scheduler.runs("report")] == ["succeeded"]


def test_a_slot_that_has_run_does_not_run_again() -> None:
    clock = ManualClock(SUNDAY_NOON)
    scheduler = clock.scheduler(report)
    scheduler.tick()
    clock.move_to(MONDAY_AT_NINE)
    assert len(scheduler.tick()) == 1
    assert scheduler.tick() == []
    clock.advance("1d")
    assert [f"{run.slot:%A}" for run in scheduler.tick()] == ["Tuesday"]


def test_the_decorated_function_is_still_the_function() -> None:
    scheduler = ManualClock(SUNDAY_NOON).scheduler(report)
    scheduler.tick()
    assert [f"{slot:%a %H:%M}" for slot in scheduler.upcoming("report", 2)] == ["Mon 09:00", "Tue 09:00"]
    assert callable(report)
