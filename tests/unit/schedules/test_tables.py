"""The tables behind cron: days and times of day, against asking one by one."""

from __future__ import annotations

from datetime import date, timedelta

from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from solocron.schedules.days import Days
from solocron.schedules.field import ANY_TIME
from solocron.schedules.readings import Wall
from solocron.schedules.time_of_day import DAY, Dial
from tests.properties import calm

EPOCH = date(1970, 1, 1)


def values(size: int) -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.integers(0, size - 1), min_size=1, max_size=6)


@given(values(24), values(60), values(60), st.integers(0, DAY - 1))
def test_times_of_day_are_found_both_ways_and_counted(hours, minutes, seconds, time):
    dial = Dial(hours, minutes, seconds)
    times = sorted(h * 3600 + m * 60 + s for h in hours for m in minutes for s in seconds)
    later = next((t for t in times if t >= time), None)
    earlier = next((t for t in reversed(times) if t <= time), None)
    assert dial.ceil(time) == later if later is not None else dial.ceil(time) >= DAY
    assert dial.floor(time) == earlier if earlier is not None else dial.floor(time) < 0
    assert dial.rank(time) == sum(t < time for t in times)
    assert dial.rank(DAY) == dial.per_day == len(times)
    assert (dial.first, dial.last) == (times[0], times[-1])


DATES = [
    "* * *",
    "1 * *",
    "L * *",
    "LW * *",
    "* * MON",
    "* 2 MON#5",
    "29 2 *",
    "31 * *",
    "13 * FRI",
    "*/2 * MON",
    "* 6-8 5L",
]


@calm(60)
@given(st.sampled_from(DATES), st.dates(date(1900, 1, 1), date(2200, 1, 1)), st.integers(0, 1200))
def test_days_are_those_that_cronsim_names(text, start, length):
    fields, days = CronSim(f"0 0 {text}", ANY_TIME), Days(text)
    span = [start + timedelta(days=n) for n in range(length + 1)]
    wanted = [(d - EPOCH).days for d in span if d.month in fields.months and fields.match_day(d)]
    first, last = ((d - EPOCH).days for d in (span[0], span[-1]))
    assert days.count(first, last + 1) == len(wanted)
    if wanted:
        assert days.ceil(first) == wanted[0]
        assert days.floor(last) == wanted[-1]
    else:
        assert days.ceil(first) > last
        assert days.floor(last) < first


def test_a_date_that_no_year_has_does_not_exist():
    assert Days("29 2 *").exist()
    assert Days("* 2 MON#5").exist()
    assert not Days("*/30 2 MON#5").exist()


def test_the_rarest_days_are_found_over_a_skipped_leap_year():
    """The next 29 February that is a Monday, seen from 1892 and from 2092: none in 1900 and 2100."""
    days = Days("*/28 2 MON")
    for start, end in ((date(1892, 3, 1), date(1904, 3, 1)), (date(2072, 3, 1), date(2112, 2, 28))):
        leap = [
            day
            for day in (date(year, 2, 29) for year in range(start.year, end.year + 1) if year % 4 == 0 and year % 100)
            if day.weekday() == 0 and start <= day <= end
        ]
        found = []
        at = (start - EPOCH).days
        while (at := days.ceil(at)) <= (end - EPOCH).days:
            day = EPOCH + timedelta(days=at)
            if day.day == 29:
                found.append(day)
            at += 1
        assert found == leap


instants = st.integers(-(10**9), 5 * 10**9)
forty_years = st.integers(1_300_000_000, 1_400_000_000)  # enough for the rarest of these days


@given(st.sampled_from(DATES), values(24), values(60), instants, forty_years)
def test_readings_agree_forward_backward_and_counted(text, hours, minutes, start, length):
    wall = Wall(Days(text), Dial(hours, minutes, frozenset({0, 30})))
    first, last = wall.ceil(start), wall.floor(start + length)
    assert wall.has(first)
    assert wall.has(last)
    assert wall.floor(first) == first
    assert wall.floor(first - 1) < start
    assert wall.ceil(last + 1) > start + length
    assert wall.count(start, start + length + 1) == wall.count(first, last) + 1
    assert wall.count(start, first) == 0
