"""A run that fails is tried again only if the job allows it, after a growing pause, under the same key."""

from __future__ import annotations

from solocron import Backoff, Run, every
from solocron.testing.clock import ManualClock

NO_JITTER = Backoff("10s", factor=2, cap="1m", jitter=0)


def test_without_retries_a_failure_is_final() -> None:
    @every("1m")
    def charge() -> None:
        raise ValueError("the bank is closed")

    clock = ManualClock()
    scheduler = clock.scheduler(charge)
    scheduler.tick()
    clock.advance("1m")
    (run,) = scheduler.tick()
    assert run.status == "failed"
    assert "ValueError: the bank is closed" in (run.error or "")
    clock.advance("50s")
    assert scheduler.tick() == []


def test_with_retries_the_next_attempt_follows_after_the_backoff() -> None:
    @every("1h", retries=2, backoff=NO_JITTER)
    def charge(run: Run) -> str:
        if run.attempt < 3:
            raise ValueError("the bank is closed")
        return run.key

    clock = ManualClock()
    scheduler = clock.scheduler(charge)
    scheduler.tick()
    clock.advance("1h")
    assert [run.status for run in scheduler.tick()] == ["failed"]
    clock.advance("9s")
    assert scheduler.tick() == [], "10 s have not passed"
    clock.advance("1s")
    assert [run.status for run in scheduler.tick()] == ["failed"]
    clock.advance("20s")
    (run,) = scheduler.tick()
    assert (run.status, run.attempt, run.result) == ("succeeded", 3, "charge@2026-01-01T01:00:00Z")
    assert {known.key for known in scheduler.runs("charge")} == {run.key}, "attempts share the idempotency key"
    assert len({known.fence for known in scheduler.runs("charge")}) == 3, "each attempt has a fence of its own"
