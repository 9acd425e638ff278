"""Nobody was there for ten minutes of a job that runs every minute: what runs now is a declared choice.

Every slot that does not run is on record, however many there are: a long outage is one record, not a thousand.
"""

from __future__ import annotations

from solocron.model.policy import CatchUp, catch_up_all
from tests.fundamentals.one_job import OneJob

BACK = 659
"""When a node is back: the slots of 60 to 600 are missed, and the next is a second away."""


def after_the_outage(catch_up: str | CatchUp) -> OneJob:
    return OneJob("1m", catch_up=catch_up).at(BACK)


def test_skip_runs_none_of_them() -> None:
    job = after_the_outage("skip")
    assert job.run_all() == []
    assert job.covered("missed") == [(60, 600, 10)]


def test_latest_runs_the_last_one() -> None:
    """The default: a report that is due by now is made once."""
    job = after_the_outage("latest")
    assert job.run_all() == [600]
    assert job.covered("missed") == [(60, 540, 9)]


def test_all_runs_every_one_in_order() -> None:
    job = after_the_outage("all")
    assert job.run_all() == [60, 120, 180, 240, 300, 360, 420, 480, 540, 600]


def test_all_may_be_bounded_by_number_and_by_age() -> None:
    assert after_the_outage(catch_up_all(limit=3)).run_all() == [480, 540, 600]
    assert after_the_outage(catch_up_all(within="2m")).run_all() == [540, 600]


def test_a_year_of_every_second_is_one_record() -> None:
    job = OneJob("1s", catch_up="skip").at(365 * 86_400)
    job.claim()
    (record,) = job.records("missed")
    assert record.count > 31_000_000
