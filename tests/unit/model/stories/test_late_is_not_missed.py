"""A slot is late until a lease and two beats after its instant and then still runs; after that it is missed."""

from __future__ import annotations

from tests.unit.model.one_job import BEAT, LATE_FOR, LEASE, OneJob

HOUR = 3600


def test_late_is_the_time_that_a_takeover_may_take() -> None:
    assert LATE_FOR == LEASE + 2 * BEAT == 25


def test_a_late_slot_runs_even_if_nothing_is_caught_up() -> None:
    job = OneJob("1h", catch_up="skip").at(HOUR + LATE_FOR - 1)
    assert job.run_all() == [HOUR]


def test_a_missed_slot_is_a_matter_of_catch_up() -> None:
    job = OneJob("1h", catch_up="skip").at(HOUR + LATE_FOR)
    assert job.run_all() == []
    assert job.ended() == [(HOUR, "missed")]


def test_start_within_caps_both() -> None:
    """Better never than late, for a job whose hour has passed."""
    assert OneJob("1h", start_within=10).at(HOUR + 10).run_all() == [HOUR]
    assert OneJob("1h", start_within=10).at(HOUR + 11).run_all() == []
    assert OneJob("1h", start_within=600, catch_up="all").at(HOUR + 600).run_all() == [HOUR]
