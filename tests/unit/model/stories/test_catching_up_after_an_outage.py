"""No node was there for ten minutes of a job that runs every minute: what runs now is a declared choice.

Every slot that does not run is on record, however many there are: a long outage is one record, not a thousand.
"""

from __future__ import annotations

from typing import Any

import pytest

from solocron import InvalidError
from solocron.clock import SECOND
from solocron.model.policy import CatchUp, catch_up_all
from tests.unit.model.one_job import OneJob, seconds

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


def test_a_rate_spreads_the_catching_up_and_live_slots_go_first() -> None:
    """Ten a minute: one every six seconds, on whichever node; the slot of now does not wait for the past."""
    job = OneJob("1m", catch_up=catch_up_all(rate="10/m"))
    assert job.at(600).run_all() == [600, 60]
    assert job.at(605).claim() is None
    assert job.job.due_at == job.now + 1 * SECOND
    assert job.at(606).run_all("b") == [120]
    assert job.at(612).run_all("a") == [180]
    assert job.at(660).run_all() == [660, 240]


def test_what_is_caught_up_at_a_rate_takes_no_place_in_the_queue() -> None:
    job = OneJob("1m", catch_up=catch_up_all(rate="1/h"), overlap="queue").at(719)
    running = job.claims("a")
    assert seconds(running.slot) == 60
    assert job.at(720).claim("b") is None, "it waits for the run of the past to end"
    job.finish(running)
    assert job.run_all("b") == [720]


@pytest.mark.parametrize(
    "rate", ["", "10", "10/", "/m", "0/m", "10/w", "1.5/s", " 1/s", "10 / m", "-1/m", 10, None, "1/s\n"]
)
def test_a_rate_that_is_none_is_refused(rate: Any) -> None:
    if rate is None:
        assert catch_up_all(rate=None) == catch_up_all()
        return
    with pytest.raises(InvalidError, match="is not a rate"):
        catch_up_all(rate=rate)
