"""The first and the last day of a schedule: outside of them it has no slot, inside every slot that it had."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from solocron.errors import ScheduleError
from solocron.schedules import Bounded, Cron, Every, Schedule, dst_notes, dump, load, spread
from solocron.schedules.bounded import rule_of
from solocron.schedules.zone import load_zone
from tests.properties import calm
from tests.unit.schedules.test_properties import crons, instants_of_time

DAY = timedelta(days=1)


days_around = st.timedeltas(-5 * DAY, 5 * DAY)


@calm(60)
@given(crons(), instants_of_time, st.lists(days_around, min_size=2, max_size=2, unique=True).map(sorted), st.data())
def test_it_has_the_slots_of_its_schedule_between_its_bounds(cron: Cron, t: datetime, bounds: Any, data: Any) -> None:
    """The bounds are drawn around the instant, so that they lie in the time that is looked at."""
    starts, ends = (data.draw(st.none() | st.just(t + bound)) for bound in bounds)
    bounded = Bounded(cron, starts, ends)
    after = cron.after(t if starts is None else max(t, starts - timedelta(microseconds=1)))
    assert bounded.after(t) == (after if after is not None and (ends is None or after <= ends) else None)
    before = cron.before(t if ends is None else min(t, ends + timedelta(microseconds=1)))
    assert bounded.before(t) == (before if before is not None and (starts is None or before >= starts) else None)
    a, b = t - 6 * DAY, t + 6 * DAY
    inside = [s for s in cron.between(a, b) if (starts is None or s >= starts) and (ends is None or s <= ends)]
    assert list(bounded.between(a, b)) == inside
    assert bounded.count(a, b) == len(inside)


@calm(40)
@given(crons(), st.dates(date(1980, 1, 1), date(2100, 1, 1)), st.integers(0, 40))
def test_a_date_is_a_whole_day_of_the_zone_whatever_the_clocks_do(cron: Cron, first: date, days: int) -> None:
    last = first + timedelta(days=days)
    bounded, info = Bounded(cron, first, last.isoformat()), load_zone(cron.zone).info
    begin = datetime(first.year, first.month, first.day, tzinfo=UTC)
    for slot in cron.between(begin - 3 * DAY, begin + timedelta(days=days + 3)):
        local = slot.astimezone(info).date()
        assert (bounded.count(slot - timedelta(microseconds=1), slot) == 1) is (first <= local <= last), slot


@calm(40)
@given(crons(), st.lists(st.none() | instants_of_time | st.dates(), min_size=2, max_size=2), st.booleans())
def test_it_survives_every_journey(cron: Cron, bounds: Any, spreads: bool) -> None:
    schedule: Schedule = spread(cron, "10m", "job") if spreads else cron
    try:
        bounded = Bounded(schedule, *bounds)
    except ScheduleError:
        assume(False)
        raise
    for again in (load(dump(bounded)), pickle.loads(pickle.dumps(bounded)), copy.deepcopy(bounded)):
        assert again == bounded or bounds == [None, None]
        assert again is not None
        assert again.after(datetime(2027, 1, 1, tzinfo=UTC)) == bounded.after(datetime(2027, 1, 1, tzinfo=UTC))
    assert rule_of(bounded) == cron


def test_a_day_that_begins_at_one_o_clock_begins_there() -> None:
    """In Beirut the clocks of 2022-03-27 went from 00:00 to 01:00: its midnight does not exist."""
    hourly = Bounded(Cron("0 * * * *", tz="Asia/Beirut"), "2022-03-27", "2022-03-27")
    slots = list(hourly.between(datetime(2022, 3, 1, tzinfo=UTC), datetime(2022, 4, 1, tzinfo=UTC)))
    assert len(slots) == 23
    assert slots[0] == datetime(2022, 3, 26, 22, tzinfo=UTC)


def test_a_day_with_a_repeated_hour_has_both() -> None:
    hourly = Bounded(Cron("0 * * * *", tz="Europe/Paris"), date(2027, 10, 31), date(2027, 10, 31))
    assert hourly.count(datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)) == 25


def test_the_bounds_are_said_in_words() -> None:
    daily = Cron("0 9 * * *", tz="Europe/Paris")
    assert Bounded(daily, "2027-01-01", "2027-03-31").describe() == (
        "At 09:00 every day, Europe/Paris, from 2027-01-01, until 2027-03-31"
    )
    noon = Bounded(Every("1h"), ends="2027-03-31T12:00:00+02:00")
    assert noon.describe() == "Every 1h, until 2027-03-31 10:00:00 UTC"
    assert noon.before(datetime(2030, 1, 1, tzinfo=UTC)) == datetime(2027, 3, 31, 10, tzinfo=UTC), "included"


def test_clock_changes_outside_of_the_bounds_are_not_noted() -> None:
    nightly, year = Cron("30 2 * * *", tz="Europe/Paris"), timedelta(days=366)
    start = 1_798_761_600_000_000  # 2027
    assert len(dst_notes(nightly, start, year)) == 2
    (note,) = dst_notes(Bounded(nightly, starts="2027-05-01"), start, year)
    assert note.startswith("2027-10-31")
    assert dst_notes(Bounded(nightly, "2027-05-01", "2027-06-01"), start, year) == []


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (("2027-03-31", "2027-03-30"), r"ends='2027-03-30' is before starts='2027-03-31': there would never be a slot"),
        (("tomorrow",), r"starts='tomorrow' cannot be read\. Give a date"),
        (("2027-13-01",), "starts='2027-13-01' cannot be read"),
        (("2027-03-31T12:00",), "starts='2027-03-31T12:00' has no time zone"),
        ((None, datetime(2027, 3, 31)), "has no time zone"),  # noqa: DTZ001 - the mistake under test
        ((None, 3), "ends=3 is neither a date nor an instant"),
    ],
)
def test_a_bound_that_cannot_be_is_refused(bounds: Any, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        Bounded(Every("1h"), *bounds)


def test_bounds_are_given_once() -> None:
    with pytest.raises(ScheduleError, match="give starts= and ends= once"):
        Bounded(Bounded(Every("1h"), "2027-01-01"), "2027-01-02")
