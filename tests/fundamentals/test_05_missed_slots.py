"""No replica was up for five hours. Every slot of that time has a word in the log; which of them run is a choice."""

from __future__ import annotations

from typing import Any

import pytest

from solocron import Run, catch_up_all, every
from solocron.testing.clock import ManualClock


def hours_that_ran(**options: Any) -> tuple[list[int], int]:
    """Run an hourly job at 01:00, then let no replica look until 06:10; return what ran, and the missed slots."""
    clock = ManualClock()
    ran: list[int] = []

    @every("1h", **options)
    def sync(run: Run) -> None:
        ran.append(run.slot.hour)

    scheduler = clock.scheduler(sync)
    scheduler.tick()
    clock.advance("1h")
    scheduler.tick()
    clock.advance("5h10m")
    scheduler.tick()
    return ran, sum(run.count for run in scheduler.runs("sync", status="missed"))


@pytest.mark.parametrize(
    ("catch_up", "ran", "missed"),
    [
        ("latest", [1, 6], 4),
        ("skip", [1], 5),
        ("all", [1, 2, 3, 4, 5, 6], 0),
        (catch_up_all(limit=2), [1, 5, 6], 3),
    ],
    ids=["latest", "skip", "all", "the last two"],
)
def test_what_was_missed_is_made_up_for_as_the_job_says(catch_up: Any, ran: list[int], missed: int) -> None:
    assert hours_that_ran(catch_up=catch_up) == (ran, missed)


def test_the_default_is_the_latest_slot() -> None:
    assert hours_that_ran() == ([1, 6], 4)


def test_a_slot_that_came_too_late_is_missed_all_the_same() -> None:
    """`start_within`: after that time the run would be of no use."""
    assert hours_that_ran(start_within="5m") == ([1], 5)
