"""Spread: herds are thinned out, and every replica agrees how."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.errors import InvalidError, ScheduleError
from solocron.schedules import Cron, Every, Spread, instants, spread
from solocron.schedules.spread import stable_number

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_offset_is_a_contract():
    """Changing it moves everyone's jobs."""
    assert spread(Every("1h"), "10m", "report").offset_us == 242_967_000
    assert stable_number("report", "minute", 60) == 48


@given(st.text(min_size=1), st.timedeltas(timedelta(milliseconds=1), timedelta(days=30)))
def test_the_offset_lies_within_and_follows_from_the_name(name, within):
    shifted = spread(Every("1h"), within, name)
    assert timedelta() <= timedelta(microseconds=shifted.offset_us) < within
    assert shifted == spread(Every("1h"), within, name)


def test_names_are_spread_evenly():
    offsets = [spread(Every("1h"), "10s", f"job-{n}").offset_us // 1_000_000 for n in range(5_000)]
    assert all(400 < offsets.count(second) < 600 for second in range(10))


def test_every_slot_moves_by_the_offset():
    cron = Cron("0 9 * * *", tz="America/New_York")
    shifted = spread(cron, "30m", "report")
    offset = timedelta(microseconds=shifted.offset_us)
    a, b = DAY, DAY + timedelta(days=400)
    moved = [slot + offset for slot in cron.between(a - offset, b - offset)]
    assert list(shifted.between(a, b)) == moved
    assert shifted.count(a, b) == len(moved)
    assert shifted.count(moved[0] - timedelta(microseconds=1), moved[0]) == 1
    assert shifted.count(moved[0], moved[1] - timedelta(microseconds=1)) == 0
    assert shifted.after(a) == moved[0]
    assert shifted.before(b) == moved[-1]
    assert shifted.zone == "America/New_York"


def test_the_nominal_reading_is_that_of_the_unshifted_slot():
    shifted = spread(Cron("0 9 * * *", tz="Europe/Paris"), "30m", "report")
    slot = instants.after(shifted, 1_767_225_600_000_000)
    assert shifted.nominal(slot) == "2026-01-01T09:00:00"
    assert shifted.instant_of("2026-01-01T09:00:00") == slot
    assert spread(Every("1h"), "1m", "a").instant_of("2026-01-01T09:00:00") is None


def test_it_says_by_how_much():
    shifted = spread(Cron("0 9 * * *"), "10m", "report")
    assert shifted.describe() == "At 09:00 every day, UTC, 4m2s967ms later (spread over 10m)"
    assert repr(shifted) == "spread(Cron('0 9 * * *'), '10m', 'report')"


def test_what_makes_no_sense_is_refused():
    once = spread(Every("1h"), "1m", "a")
    assert isinstance(once, Spread)
    with pytest.raises(ScheduleError, match="spread already"):
        spread(once, "1m", "a")
    with pytest.raises(InvalidError, match="nothing to spread over"):
        spread(Every("1h"), 0, "a")
    with pytest.raises(InvalidError, match=r"^spread: 'soon'"):
        spread(Every("1h"), "soon", "a")
    with pytest.raises(InvalidError, match="needs the job's name"):
        spread(Every("1h"), "1m", "")
