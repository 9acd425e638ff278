"""A node dies, another takes over; should the first one come back, nothing it writes is accepted any more."""

from __future__ import annotations

from tests.unit.model.one_job import OneJob

HOUR = 3600


def test_without_retries_a_crash_is_lost_and_not_repeated() -> None:
    job = OneJob("1h").at(HOUR)
    job.claims("a")
    job.at(HOUR + 15).take_over("a")
    assert job.ended() == [(HOUR, "lost")]
    assert job.claim("b") is None


def test_with_retries_it_goes_on_at_once_on_another_node() -> None:
    job = OneJob("1h", retries=1).at(HOUR)
    job.claims("a")
    job.at(HOUR + 15).take_over("a")
    hold = job.claims("b")
    assert (hold.attempt, hold.node) == (2, "b")


def test_on_crash_fail_retries_failures_only() -> None:
    job = OneJob("1h", retries=1, on_crash="fail").at(HOUR)
    job.claims("a")
    job.take_over("a")
    assert job.claim("b") is None


def test_the_zombie_is_refused() -> None:
    """A write counts only if the very hold, with its fence, still stands."""
    job = OneJob("1h", retries=1).at(HOUR)
    old = job.claims("a")
    job.at(HOUR + 15).take_over("a")
    new = job.claims("b")
    assert new.fence > old.fence
    assert job.finish(old) is None, "a wakes up and is refused"
    assert job.finish(new) == "accepted"
    assert [status for _, status in job.ended()] == ["lost", "succeeded"]


def test_a_finish_whose_answer_was_lost_may_be_repeated() -> None:
    job = OneJob("1h").at(HOUR)
    hold = job.claims("a")
    assert job.finish(hold) == "accepted"
    assert job.finish(hold) == "accepted before"
