"""Periods and single instants."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.clock import from_us
from solocron.errors import InvalidError, ScheduleError
from solocron.schedules import At, Every, Schedule

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
moments = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(st.timedeltas(timedelta(milliseconds=1), timedelta(days=3000)), moments)
def test_every_slot_is_a_multiple_of_the_period_since_1970(period, t):
    every = Every(period)
    later, earlier = every.after(t), every.before(t)
    assert earlier < t < later
    assert (later - from_us(0)) % period == timedelta()
    assert later - earlier in (period, 2 * period)  # two when t is a slot itself
    assert every.count(earlier, later) == (later - earlier) // period
    assert every.count(earlier - timedelta(microseconds=1), earlier) == 1


@pytest.mark.invariant("I18: every node finds the same slots")
def test_every_node_finds_the_same_slots_whenever_it_starts():
    every = Every("7m")
    whole = list(every.between(NOON, NOON + timedelta(hours=3)))
    assert len(whole) == every.count(NOON, NOON + timedelta(hours=3))
    for minutes in range(180):
        t = NOON + timedelta(minutes=minutes)
        assert list(every.between(t, NOON + timedelta(hours=3))) == [slot for slot in whole if slot > t]


@pytest.mark.parametrize("bad", ["0s", 0, 0.0001, timedelta(), "", "soon", -1, None])
def test_a_period_that_is_none_is_refused(bad):
    with pytest.raises(InvalidError, match=r"^every: "):
        Every(bad)


def test_periods_are_read_like_all_durations_and_compare_by_length():
    assert Every("1h30m") == Every(5400) == Every(timedelta(minutes=90))
    assert Every("1h") != Every("2h")
    assert Every("90m").describe() == "Every 1h30m"
    assert repr(Every("90m")) == "Every('1h30m')"
    assert Every("90m").period == timedelta(minutes=90)


def test_the_calendar_ends_for_periods_too():
    every = Every("400d")
    start, end = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert every.after(end) is None
    assert every.before(start) is None
    slots = list(every.between(start, end))
    assert every.count(start, end) == len(slots)
    assert every.after(start) == slots[0]
    assert every.before(end) == slots[-1]


def test_at_is_one_slot():
    at, second = At(NOON), timedelta(seconds=1)
    assert at.after(NOON - second) == NOON
    assert at.after(NOON) is None
    assert at.before(NOON) is None
    assert at.before(NOON + second) == NOON
    assert list(at.between(NOON - second, NOON)) == [NOON]
    assert at.count(NOON - second, NOON) == 1
    assert at.count(NOON, NOON + second) == 0


def test_at_is_the_same_instant_in_every_zone():
    tokyo = datetime.fromisoformat("2026-01-01T21:00:00+09:00")
    assert At(tokyo) == At(NOON)
    assert At(tokyo).describe() == "Once, at 2026-01-01 12:00:00 UTC"
    assert repr(At(tokyo)) == "At('2026-01-01T12:00:00Z')"


@pytest.mark.parametrize("bad", [datetime(2026, 1, 1), "2026-01-01", None, 5])  # noqa: DTZ001
def test_what_is_no_instant_is_refused(bad):
    with pytest.raises(ScheduleError, match="not an aware datetime"):
        At(bad)


@pytest.mark.parametrize("schedule", [Every("1m"), At(NOON)])
def test_they_have_no_local_reading_and_are_schedules(schedule):
    assert schedule.nominal(0) is None
    assert schedule.instant_of("2026-01-01T00:00:00") is None
    assert schedule.zone == "UTC"
    assert isinstance(schedule, Schedule)
    with pytest.raises(AttributeError, match="immutable"):
        schedule.zone = "Europe/Paris"
