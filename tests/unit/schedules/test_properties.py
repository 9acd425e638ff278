"""Any expression, any zone, any instant: the promises of a schedule hold."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from solocron.errors import ScheduleError
from solocron.schedules import At, Cron, Every, Schedule, dump, instants, lint, load, spread
from solocron.schedules.zone import load_zone, zone_names
from tests.properties import calm
from tests.unit.schedules.oracle import (
    FIRST,
    LAST,
    assert_all_agree,
    by_cronsim,
    by_the_rules,
    changes,
    distinct_zones,
    moment,
    seconds,
)


def number(low: int, high: int) -> st.SearchStrategy[str]:
    return st.integers(low, high).map(str)


def ranges(low: int, high: int) -> st.SearchStrategy[str]:
    pairs = st.tuples(st.integers(low, high), st.integers(low, high)).map(sorted)
    steps = st.sampled_from(["", "", "/2", "/3", "/7", "/15", "/40"])
    return st.tuples(pairs, steps).map(lambda both: f"{both[0][0]}-{both[0][1]}{both[1]}")


def field(low: int, high: int, *special: str) -> st.SearchStrategy[str]:
    item = st.one_of(number(low, high), ranges(low, high), *([st.sampled_from(special)] if special else []))
    stars = st.sampled_from(["*", "*", "*/2", "*/5", "*/13"])
    return st.one_of(stars, number(low, high), st.lists(item, min_size=1, max_size=4).map(",".join))


dates = st.tuples(
    st.one_of(st.just("*"), field(1, 31, "L", "LW")),
    st.one_of(st.just("*"), field(1, 12, "JAN", "FEB", "OCT-DEC")),
    st.one_of(st.just("*"), field(0, 7, "MON", "TUE-FRI", "SUN#1", "WED#5", "5L")),
)
expressions = st.tuples(field(0, 59), field(0, 23), dates).map(lambda parts: " ".join([*parts[:2], *parts[2]]))
rules = st.fixed_dictionaries(
    {}, optional={"gap": st.sampled_from(["run-after", "skip"]), "fold": st.sampled_from(["first", "last", "both"])}
)
instants_of_time = st.datetimes(datetime(1975, 1, 1), datetime(2140, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@st.composite
def crons(draw: st.DrawFn, zones: st.SearchStrategy[str] | None = None) -> Cron:
    tz = draw(zones if zones is not None else st.sampled_from(["UTC", *distinct_zones()]))
    try:
        return Cron(draw(expressions), tz=tz, dst=draw(rules))
    except ScheduleError:  # such as 31 February
        assume(False)
        raise


@st.composite
def around_a_change(draw: st.DrawFn) -> tuple[str, datetime]:
    tz = draw(st.sampled_from([name for name in distinct_zones() if changes(name)]))
    change = draw(st.sampled_from(changes(tz)))
    return tz, moment(change.at + draw(st.integers(-7200, 7200)))


@calm(60)
@given(st.data(), around_a_change())
def test_around_a_change_the_slots_are_those_of_the_rules(data, place):
    tz, middle = place
    cron = data.draw(crons(st.just(tz)))
    a, b = middle - timedelta(hours=4), middle + timedelta(hours=8)
    assert_all_agree(cron, a, b, by_the_rules(cron, a, b))


@calm(100)
@given(crons(), st.datetimes(datetime(2020, 1, 1), datetime(2039, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_by_default_the_next_slots_are_those_of_cronsim(cron, t):
    cron = Cron(cron.expression, tz=cron.zone)
    third = t
    for _ in range(3):
        third = cron.after(third)
        assume(third is not None)
    near = (
        [c for c in changes(cron.zone) if seconds(t) - 90_000 < c.at < seconds(third) + 90_000]
        if cron.zone != "UTC"
        else []
    )
    assume(not near)  # at the changes themselves test_all_zones compares, knowing where cronsim errs
    info = UTC if cron.zone == "UTC" else load_zone(cron.zone).info
    ours = list(cron.between(t, third))
    assert ours == by_cronsim(cron.expression, info, t, third)
    assert len(ours) == 3


@calm(100)
@given(crons(), instants_of_time)
def test_the_next_slot_is_later_and_the_last_one_earlier(cron, t):
    later, earlier = cron.after(t), cron.before(t)
    if later is not None:
        assert later > t
        assert cron.before(later + timedelta(microseconds=1)) == later
        assert cron.count(t, later) == 1
        assert cron.count(t, later - timedelta(microseconds=1)) == 0
    if earlier is not None:
        assert earlier < t
        assert cron.after(earlier - timedelta(microseconds=1)) == earlier
        assert cron.after(earlier) == (t if cron.count(earlier, t) else later)


@calm(40)
@given(crons(), st.lists(instants_of_time, min_size=3, max_size=3).map(sorted))
def test_counts_add_up(cron, three):
    a, b, c = three
    assert cron.count(a, b) + cron.count(b, c) == cron.count(a, c)
    assert cron.count(b, a) == 0
    assert cron.count(a, a) == 0


@calm(60)
@given(crons(st.sampled_from(sorted(zone_names()))), instants_of_time)
def test_a_local_reading_leads_back_to_its_slot(cron, t):
    slot = cron.after(t)
    assume(slot is not None)
    us = seconds(slot) * 1_000_000
    nominal = instants.nominal(cron, us)
    assert nominal is None if cron.zone == "UTC" else instants.instant_of(cron, nominal) == us


schedules: st.SearchStrategy[Schedule] = st.one_of(
    crons(),
    st.timedeltas(timedelta(milliseconds=1), timedelta(days=4000)).map(Every),
    st.datetimes(timezones=st.just(UTC)).map(At),
)


@pytest.mark.invariant("I18: every node finds the same slots")
@calm(40)
@given(schedules, st.none() | st.timedeltas(timedelta(milliseconds=1), timedelta(days=400)), st.text(min_size=1))
def test_a_schedule_survives_every_journey(schedule, within, name):
    """Written and read, pickled, copied: the same schedule, with the same slots."""
    if within is not None:
        schedule = spread(schedule, within, name)
    for again in (load(dump(schedule)), pickle.loads(pickle.dumps(schedule)), copy.deepcopy(schedule)):
        assert again == schedule
        assert hash(again) == hash(schedule)
        assert (
            list(again.between(FIRST, FIRST + timedelta(minutes=2)))[:50]
            == list(schedule.between(FIRST, FIRST + timedelta(minutes=2)))[:50]
        )
        assert again.after(LAST) == schedule.after(LAST)
    assert isinstance(schedule, Schedule)
    assert schedule.describe()
    assert all(line.endswith(".") for line in lint(schedule))
