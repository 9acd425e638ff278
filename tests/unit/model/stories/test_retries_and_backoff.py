"""A failed run waits, longer each time, and tries again: the same run, the next attempt, any node."""

from __future__ import annotations

from solocron.model.policy import Backoff
from tests.unit.model.one_job import OneJob

HOUR = 3600


def test_by_default_a_function_is_started_at_most_once() -> None:
    job = OneJob("1h").at(HOUR)
    job.fail(job.claims("a"))
    assert job.at(HOUR + 600).claim("b") is None
    assert job.ended() == [(HOUR, "failed")]


def test_each_failure_doubles_the_wait_up_to_a_cap() -> None:
    job = OneJob("1h", retries=4, backoff=Backoff(first="10s", factor=2, cap="30s", jitter=0)).at(HOUR)
    attempts = []
    for second in (0, 10, 30, 60, 90):
        hold = job.at(HOUR + second).claims("any node")
        attempts.append(hold.attempt)
        job.fail(hold)
        assert job.claim("any node") is None, "it waits"
    assert attempts == [1, 2, 3, 4, 5]
    assert job.job.waiting_runs == ()


def test_attempts_share_the_run_and_its_idempotency_key_but_not_the_fence() -> None:
    job = OneJob("1h", retries=1, backoff=Backoff(first="0s")).at(HOUR)
    first = job.claims("a")
    job.fail(first)
    second = job.claims("b")
    assert second.run == first.run
    assert second.fence > first.fence
    assert len({record.key for record in job.log.values()}) == 1


def test_a_run_that_waits_for_its_next_attempt_counts_as_running() -> None:
    job = OneJob("1m", overlap="skip", retries=1, backoff=Backoff(first="90s", jitter=0)).at(60)
    job.fail(job.claims("a"))
    assert job.at(120).claim("b") is None
    assert job.ended() == [(60, "failed"), (120, "skipped")]


def test_a_claim_that_never_started_is_handed_back_and_costs_nothing() -> None:
    """A node that drains gives back what it has not begun; that is no failure and uses no retry."""
    job = OneJob("1h").at(HOUR)
    job.hand_back(job.claims("a node that stops"))
    assert job.claims("b").tries == 0
