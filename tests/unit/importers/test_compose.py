"""An expression made from sets of days matches a day exactly when all the sets do, or is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron import Cron
from solocron.errors import InvalidError
from solocron.importers.compose import Fields, expression

ALL_DAYS, ALL_WEEKDAYS = frozenset(range(1, 32)), frozenset(range(7))
START = datetime(2027, 1, 1, tzinfo=UTC)


def subsets(low: int, high: int) -> st.SearchStrategy[frozenset[int]]:
    """Sets that people write: whole, stepped, a range, or a few."""
    whole = list(range(low, high + 1))
    stepped = st.integers(1, len(whole)).map(lambda n: frozenset(whole[::n]))
    few = st.frozensets(st.sampled_from(whole), min_size=1)
    ranges = st.tuples(st.sampled_from(whole), st.sampled_from(whole)).map(
        lambda ends: frozenset(range(min(ends), max(ends) + 1))
    )
    return st.one_of(st.just(frozenset(whole)), stepped, ranges, few)


@given(days=subsets(1, 31), weekdays=subsets(0, 6), months=subsets(1, 12))
def test_a_day_matches_when_day_month_and_weekday_all_do(
    days: frozenset[int], weekdays: frozenset[int], months: frozenset[int]
) -> None:
    fields = Fields(minutes=frozenset({0}), hours=frozenset({0}), days=days, weekdays=weekdays, months=months)
    end = START + timedelta(days=366)
    wanted = [
        START + timedelta(days=n)
        for n in range(1, 367)
        if (day := START + timedelta(days=n)).day in days and day.month in months and day.isoweekday() % 7 in weekdays
    ]
    try:
        schedule = Cron(expression(fields))
    except InvalidError:
        assert not wanted or (days != ALL_DAYS and weekdays != ALL_WEEKDAYS)
        return
    assert list(schedule.between(START, end)) == wanted


@given(minutes=subsets(0, 59), hours=subsets(0, 23), seconds=subsets(0, 59))
def test_a_time_of_day_matches_when_hour_minute_and_second_all_do(
    minutes: frozenset[int], hours: frozenset[int], seconds: frozenset[int]
) -> None:
    text = expression(Fields(minutes=minutes, hours=hours, seconds=seconds))
    schedule = Cron(text)
    found = set(schedule.between(START - timedelta(seconds=1), START + timedelta(hours=24, seconds=-1)))
    assert len(found) == len(minutes) * len(hours) * len(seconds)
    assert all(at.hour in hours and at.minute in minutes and at.second in seconds for at in found)


@pytest.mark.parametrize(
    ("minutes", "hours", "text"),
    [
        (range(0, 60, 15), range(24), "*/15 * * * *"),
        (range(0, 60, 15), [2], "0-45/15 2 * * *"),
        ([0], range(0, 24, 3), "0 0-21/3 * * *"),
    ],
)
def test_fixed_times_never_become_wildcards(minutes: list[int], hours: list[int], text: str) -> None:
    """`*/15 2 * * *` would be left out where clocks jump over two o'clock; fixed times run right after instead."""
    assert expression(Fields(minutes=frozenset(minutes), hours=frozenset(hours))) == text


def test_a_field_without_any_value_is_refused() -> None:
    with pytest.raises(InvalidError, match="never fire"):
        expression(Fields(minutes=frozenset(), hours=frozenset({1})))
    with pytest.raises(InvalidError, match="never fire"):
        expression(Fields(minutes=frozenset({0}), hours=frozenset({1}), weekdays=frozenset()))
