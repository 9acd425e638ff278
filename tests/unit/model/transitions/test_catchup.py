"""Late until lease + 2 beats after its instant, then missed: `catch_up` decides, and `start_within` caps both."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.model.policy import allow, catch_up_all
from solocron.schedules import Cron
from tests.properties import calm
from tests.unit.model.one_job import LATE_FOR, OneJob, seconds

LATE = 60 + LATE_FOR
"""The first second at which the slot of second 60 is missed."""


@pytest.mark.parametrize("catch_up", ["skip", "latest", "all"])
def test_a_late_slot_runs_under_every_policy(catch_up: str) -> None:
    job = OneJob("1h", catch_up=catch_up).at(3600 + LATE_FOR - 0.001)
    assert job.run_all() == [3600]
    assert job.records("missed") == []


def test_a_slot_is_missed_from_lease_and_two_beats_on() -> None:
    job = OneJob("1h", catch_up="skip").at(3600 + LATE_FOR)
    assert job.run_all() == []
    assert job.covered("missed") == [(3600, 3600, 1)]


def test_skip_runs_no_missed_slot_and_records_them_as_one() -> None:
    job = OneJob("1m", catch_up="skip").at(600 + LATE_FOR + 1)
    assert job.run_all() == []
    assert job.covered("missed") == [(60, 600, 10)]
    assert job.reasons("missed") == ["no node ran it in time (catch_up=skip)"]


def test_latest_runs_the_last_missed_slot() -> None:
    job = OneJob("1m", catch_up="latest").at(600 + LATE_FOR + 1)
    assert job.run_all() == [600]
    assert job.covered("missed") == [(60, 540, 9)]


def test_latest_with_a_single_missed_slot_records_nothing_else() -> None:
    job = OneJob("1h", catch_up="latest").at(3600 + LATE_FOR)
    assert job.run_all() == [3600]
    assert job.ended() == [(3600, "succeeded")]


def test_all_runs_every_missed_slot_however_old() -> None:
    job = OneJob("1m", catch_up="all").at(600 + LATE_FOR + 1)
    assert job.run_all() == [60 * n for n in range(1, 11)]
    assert job.records("missed") == []


def test_all_with_a_limit_runs_the_newest() -> None:
    job = OneJob("1m", catch_up=catch_up_all(limit=3)).at(600 + LATE_FOR + 1)
    assert job.run_all() == [480, 540, 600]
    assert job.covered("missed") == [(60, 420, 7)]
    assert job.reasons("missed") == ["no node ran it in time; beyond the bounds of catch-up"]


def test_all_within_an_age_leaves_out_the_older() -> None:
    job = OneJob("1m", catch_up=catch_up_all(within="5m")).at(660)
    assert job.run_all() == [360, 420, 480, 540, 600, 660]
    assert job.covered("missed") == [(60, 300, 5)]


def test_all_within_no_age_at_all_runs_nothing_that_was_missed() -> None:
    job = OneJob("1m", catch_up=catch_up_all(within=0)).at(600 + LATE_FOR + 1)
    assert job.run_all() == []
    assert job.covered("missed") == [(60, 600, 10)]


def test_limit_and_age_both_bound() -> None:
    job = OneJob("1m", catch_up=catch_up_all(limit=2, within="5m")).at(600 + LATE_FOR + 1)
    assert job.run_all() == [540, 600]
    job = OneJob("1m", catch_up=catch_up_all(limit=9, within="3m")).at(600 + LATE_FOR + 1)
    assert job.run_all() == [480, 540, 600]


def test_missed_and_late_slots_of_one_outage_are_told_apart() -> None:
    """At 620 the slot of 600 is late and the nine before it are missed."""
    job = OneJob("1m", catch_up="skip").at(620)
    assert job.run_all() == [600]
    assert job.covered("missed") == [(60, 540, 9)]
    job = OneJob("1m", catch_up="latest").at(620)
    assert job.run_all() == [540, 600]


def test_late_slots_decided_together_run_one_after_the_other() -> None:
    """Overlap is asked only about what runs; nothing does."""
    job = OneJob("5s", overlap="skip").at(20)
    first = job.claims("a")
    assert job.claim("b") is None, "the others wait for it"
    job.finish(first)
    assert job.run_all("b") == [10, 15, 20]
    assert job.records("skipped") == []


@pytest.mark.parametrize("overlap", ["skip", "queue", "queue-all", allow(3)])
def test_missed_slots_wait_whatever_runs(overlap: object) -> None:
    """An hour later a run is still there: what catch-up promised waits for it."""
    job = OneJob("1m", overlap=overlap, catch_up="all").at(60)
    running = job.claims("a")
    job.at(240 + LATE_FOR)
    job.claim("b")
    job.finish(running)
    assert job.run_all("b")[-3:] == [120, 180, 240] or job.job.active
    assert job.records("missed") == []


class TestStartWithin:
    """`start_within` caps both the late and the missed."""

    def test_shorter_than_late_it_makes_late_slots_missed(self) -> None:
        job = OneJob("1h", catch_up="all", start_within=10).at(3610.001)
        assert job.run_all() == []
        assert job.reasons("missed") == ["no node ran it within start_within"]

    @pytest.mark.parametrize("catch_up", ["skip", "latest", "all"])
    def test_a_slot_exactly_that_old_still_runs(self, catch_up: str) -> None:
        assert OneJob("1h", catch_up=catch_up, start_within=10).at(3610).run_all() == [3600]

    def test_longer_than_late_it_bounds_catch_up(self) -> None:
        job = OneJob("1m", catch_up="all", start_within=120).at(600)
        assert job.run_all() == [480, 540, 600]
        assert job.covered("missed") == [(60, 420, 7)]

    def test_it_also_forbids_the_latest(self) -> None:
        job = OneJob("1h", catch_up="latest", start_within=120).at(7200 - 1)
        assert job.run_all() == []
        assert job.covered("missed") == [(3600, 3600, 1)]

    def test_it_does_not_widen_what_catch_up_forbids(self) -> None:
        job = OneJob("1m", catch_up="skip", start_within=3600).at(600 + LATE_FOR)
        assert job.run_all() == []
        assert job.covered("missed") == [(60, 600, 10)]

    def test_the_stricter_of_start_within_and_limit_wins(self) -> None:
        job = OneJob("1m", catch_up=catch_up_all(limit=2), start_within=300).at(600 + LATE_FOR)
        assert job.run_all() == [540, 600]
        job = OneJob("1m", catch_up=catch_up_all(limit=50), start_within=100).at(600 + LATE_FOR)
        assert job.run_all() == [540, 600]


def test_slots_of_a_cron_expression_are_counted_over_a_clock_change() -> None:
    """Two days with the hour that New York skips in March: 47 slots, not 48."""
    job = OneJob(Cron("0 * * * *", tz="America/New_York"), catch_up="skip")
    start = 62 * 86_400 + 5 * 3600  # 2026-03-08 00:00 in New York, EST; clocks jump at 02:00
    job.at(start)
    job.claim()
    job.at(start + 23 * 3600 + LATE_FOR)
    job.claim()
    assert sum(record.count for record in job.records("missed")[1:]) == 23


def test_a_slot_that_did_not_run_is_recorded_under_the_name_its_run_would_have() -> None:
    """So that the log would refuse the same slot if it were ever claimed after all as well as recorded twice."""
    hourly = Cron("0 * * * *", tz="Europe/Paris")
    job = OneJob(hourly, catch_up="skip").at(3600 + LATE_FOR)
    job.run_all()
    (record,) = job.records("missed")
    assert (record.run, record.attempt) == (OneJob(hourly).at(3600).claims().run, 0)


def test_catching_up_twice_records_nothing_twice() -> None:
    job = OneJob("1m", catch_up="skip").at(600)
    job.run_all()
    entries = len(job.log)
    assert job.claim() is None
    assert len(job.log) == entries


@pytest.mark.invariant("I10: after an outage each slot fares as its policy promises")
@calm(60)
@given(
    st.sampled_from([1, 7, 60, 600]),
    st.lists(st.tuples(st.integers(1, 900), st.sampled_from([0, 0, 1, 7])), min_size=1, max_size=60),
)
def test_missed_slots_start_no_faster_than_their_rate_and_every_slot_once(
    pace: int, looks: list[tuple[int, int]]
) -> None:
    """Whenever nodes look, and however long runs take: two missed slots never start closer than the rate allows."""
    job = OneJob("1m", catch_up=catch_up_all(rate=f"{3600 // pace}/h"), overlap="queue-all")
    now, seen = 0.0, 0.0
    ran: list[float] = []
    paced: list[float] = []
    waiting_late: set[float] = set()
    for wait, length in looks:
        now += wait
        job.at(now)
        missed = [slot for slot in range(60, int(now), 60) if slot > seen and now - slot >= LATE_FOR]
        waiting_late |= {*missed}
        while (hold := job.claim()) is not None:
            slot = seconds(hold.slot)
            ran.append(slot)
            if slot in waiting_late:
                paced.append(now)
            now += length
            job.at(now).finish(hold)
        seen = now
    assert len(ran) == len(set(ran))
    assert all(later - earlier >= pace for earlier, later in pairwise(paced))
    waiting_run = [seconds(o.slot) for o in job.job.waiting_runs]
    waiting_run += [
        slot for s in job.job.waiting_ranges for slot in range(int(seconds(s.first)), int(seconds(s.last)) + 1, 60)
    ]
    decided = range(60, int(seconds(job.job.cursor)) + 1, 60)
    assert sorted(ran + waiting_run) == list(decided)
