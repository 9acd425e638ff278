"""A calendar says which days are off. A slot on such a day is left out, or moves to a workday."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from solocron import Scheduler, cron
from solocron.testing.clock import ManualClock

THURSDAY = datetime(2026, 4, 30, 8, tzinfo=UTC)
LABOUR_DAY = {date(2026, 5, 1): "Labour Day"}


def bank(job: object) -> tuple[ManualClock, Scheduler]:
    clock = ManualClock(THURSDAY)
    scheduler = clock.scheduler(job)
    scheduler.calendar("bank", holidays=LABOUR_DAY)
    scheduler.tick()
    return clock, scheduler


def test_days_off_are_left_out_and_say_why() -> None:
    @cron("0 9 * * *", tz="UTC", calendar="bank")
    def settle() -> None: ...

    clock, scheduler = bank(settle)
    assert [f"{slot:%a %d}" for slot in scheduler.upcoming("settle", 3)] == ["Thu 30", "Mon 04", "Tue 05"]
    for _ in range(5):
        clock.advance("1d")
        scheduler.tick()
    ran = sorted(f"{run.slot:%a %d}" for run in scheduler.runs("settle", status="succeeded"))
    assert ran == ["Mon 04", "Thu 30"]
    (left_out,) = scheduler.runs("settle", status="skipped")
    assert (left_out.count, left_out.reason) == (3, "calendar bank, revision 1: Sunday")


@pytest.mark.parametrize(("rule", "day"), [("next", "Mon 04"), ("previous", "Thu 30")])
def test_or_the_slot_moves_to_a_workday(rule: str, day: str) -> None:
    @cron("0 9 1 * *", tz="UTC", calendar="bank", on_holiday=rule)
    def fees() -> None: ...

    _, scheduler = bank(fees)
    assert [f"{slot:%a %d}" for slot in scheduler.upcoming("fees", 1)] == [day]


def test_a_changed_calendar_counts_for_every_job_at_once() -> None:
    @cron("0 9 * * *", tz="UTC", calendar="bank")
    def settle() -> None: ...

    clock, scheduler = bank(settle)
    person = clock.scheduler()
    changed = person.calendar("bank", holidays={**LABOUR_DAY, date(2026, 5, 4): "a bridge day"})
    assert (changed.revision, changed.jobs) == (2, ("settle",))
    assert [f"{slot:%a %d}" for slot in scheduler.upcoming("settle", 2)] == ["Thu 30", "Tue 05"]
