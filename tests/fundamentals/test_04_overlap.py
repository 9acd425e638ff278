"""A slot is due while the run of an earlier one is at work. What happens then is a choice; the default is to skip it.

The body moves the clock: that is how a run takes long where time is manual.
"""

from __future__ import annotations

import pytest

from solocron import Run, every
from solocron.testing.clock import ManualClock


def slots_that_ran(overlap: str) -> tuple[list[str], list[str | None]]:
    """Run a job whose first run, that of 00:01, is at work until 00:03:30; return what ran, and what was skipped."""
    clock = ManualClock()
    ran: list[str] = []

    @every("1m", name="slow", overlap=overlap)
    def slow(run: Run) -> None:
        ran.append(f"{run.slot:%H:%M}")
        if len(ran) == 1:
            clock.advance("150s")
            assert replica.tick() == [], "the first run is at work: no other replica starts one"

    # The lease is longer than the run: otherwise the jump of the clock would look like the death of its node.
    scheduler, replica = clock.scheduler(slow, lease="10m"), clock.scheduler(slow, lease="10m")
    scheduler.tick()
    clock.advance("1m")
    scheduler.tick()
    return ran, [run.reason for run in scheduler.runs("slow", status="skipped")]


def test_by_default_what_falls_due_meanwhile_is_skipped_and_says_why() -> None:
    ran, (reason,) = slots_that_ran("skip")
    assert ran == ["00:01"]
    assert (reason or "").startswith("overlap: slow@")


@pytest.mark.parametrize(
    ("overlap", "ran"),
    [("queue", ["00:01", "00:02"]), ("queue-all", ["00:01", "00:02", "00:03"])],
)
def test_or_it_waits(overlap: str, ran: list[str]) -> None:
    """`queue` keeps one run waiting, `queue-all` each."""
    assert slots_that_ran(overlap)[0] == ran


def test_or_the_latest_slot_replaces_what_runs() -> None:
    ran, reasons = slots_that_ran("replace")
    assert ran == ["00:01", "00:03"]
    assert reasons == ["overlap: replaced by a later slot"]
