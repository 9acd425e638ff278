"""Schedules under a calendar, held against a slow oracle: every slot is left out or moved by itself."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron.clock import from_us, to_us
from solocron.errors import InvalidError, ScheduleError
from solocron.schedules import Cron, Every, Schedule, instants
from solocron.schedules.calendar import Calendar, Calendared
from tests.properties import calm

DAY = timedelta(days=1)
START = to_us(datetime(2025, 1, 1, tzinfo=UTC))
END = to_us(datetime(2029, 1, 1, tzinfo=UTC))
FROM = to_us(datetime(2026, 1, 20, tzinfo=UTC))
TO = to_us(datetime(2027, 12, 10, tzinfo=UTC))
A_YEAR_ON = to_us(datetime(2027, 1, 20, tzinfo=UTC))

SCHEDULES: list[Schedule] = [
    Cron("0 9 * * *", tz="Europe/Paris"),
    Cron("30 2 * * *", tz="America/New_York"),
    Cron("0 0 * * *", tz="Asia/Beirut"),
    Cron("0 9 1 * *", tz="Europe/Paris"),
    Cron("0 8,17 * * MON,SAT", tz="Europe/Vienna"),
    Cron("15 */6 * * SUN", tz="America/Sao_Paulo"),
    Cron("0 12 25 12 *"),
    Every("7h"),
    Every("36h"),
]
CALENDARS = [
    Calendar.make("plain", 1, frozenset({5, 6}), {}),
    Calendar.make(
        "busy", 1, frozenset({5, 6}), {date(2026, 5, 1): "Labour Day", date(2026, 12, 24): "", date(2026, 12, 25): "x",
                                      date(2027, 1, 1): "New Year", date(2026, 3, 30): "after the clocks changed",
                                      date(2027, 3, 26): "before", date(2026, 3, 9): "after, New York"},
    ),
    Calendar.make("fri-sat", 1, frozenset({4, 5}), {date(2026, 3, 29): "the clocks change"}),
    Calendar.make("holidays only", 1, frozenset(), {date(2026, 6, 1) + n * DAY: "shut" for n in range(20)}),
]  # fmt: skip


@cache
def oracle(schedule: Schedule, at: int, rule: str) -> list[int]:
    """Every slot of four years, one by one, each moved day by day."""
    calendar = CALENDARS[at]
    zone = ZoneInfo(instants.zone(schedule))
    found = set()
    for slot in instants.between(schedule, START, END):
        moment = from_us(slot).astimezone(zone)
        day = moment.date()
        if day.weekday() not in calendar.weekend and day not in calendar.holidays:
            found.add(slot)
        elif rule != "skip":
            while day.weekday() in calendar.weekend or day in calendar.holidays:
                day += DAY if rule == "next" else -DAY
            found.add(to_us(there(datetime.combine(day, moment.time()), zone)))
    return sorted(found)


def there(reading: datetime, zone: ZoneInfo) -> datetime:
    """A local reading as an instant; one that does not exist comes when the clocks have jumped over it."""
    moment = reading.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == reading:
        return moment
    probe = moment - timedelta(hours=3)
    offset = probe.astimezone(zone).utcoffset()
    while probe.astimezone(zone).utcoffset() == offset:
        probe += timedelta(minutes=15)
    return probe


points = st.integers(FROM, TO) | st.integers(FROM // 3_600_000_000, TO // 3_600_000_000).map(
    lambda n: n * 3_600_000_000
)


@pytest.mark.invariant("I18: every node finds the same slots")
@calm(60)
@given(
    st.sampled_from(SCHEDULES),
    st.integers(0, len(CALENDARS) - 1),
    st.sampled_from(["skip", "next", "previous"]),
    points,
    points,
)
def test_slots_under_a_calendar_are_those_of_the_oracle(
    schedule: Schedule, at: int, rule: str, one: int, other: int
) -> None:
    slots = Calendared(schedule, CALENDARS[at], rule)
    truth = oracle(schedule, at, rule)
    a, b = sorted((one, other))
    assert slots.after_us(a) == next((slot for slot in truth if slot > a), None)
    assert slots.before_us(a) == next((slot for slot in reversed(truth) if slot < a), None)
    assert slots.count_us(a, b) == sum(a < slot <= b for slot in truth)
    left = slots.left_out(a, b)
    if rule == "skip":
        gone = [slot for slot in instants.between(schedule, a, b) if slot not in set(truth)]
        assert (left and left[:3]) == ((len(gone), gone[0], gone[-1]) if gone else None)
    else:
        assert left is None


@pytest.mark.invariant("I18: every node finds the same slots")
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)], ids=["a third", "all"])
@pytest.mark.parametrize("rule", ["skip", "next", "previous"])
def test_walking_meets_every_slot_once(rule: str, step: int) -> None:
    """A third of the pairs: each schedule with one or two calendars, each calendar with three schedules."""
    for number, schedule in enumerate(SCHEDULES):
        for at in range(number % step, len(CALENDARS), step):
            slots = Calendared(schedule, CALENDARS[at], rule)
            truth = [slot for slot in oracle(schedule, at, rule) if FROM < slot <= A_YEAR_ON]
            assert list(instants.between(slots, FROM, A_YEAR_ON)) == truth


def test_a_slot_that_is_moved_onto_another_is_that_slot() -> None:
    slots = Calendared(Cron("0 9 * * *"), CALENDARS[0], "next")
    week = to_us(datetime(2026, 5, 8, 12, tzinfo=UTC))
    assert [from_us(slot).day for slot in instants.between(slots, week, week + 5 * 86_400_000_000)] == [11, 12, 13]


def test_what_the_calendar_did_and_why() -> None:
    day = to_us(datetime(2026, 4, 30, 12, tzinfo=UTC))
    skipped = Calendared(Cron("0 9 * * *"), CALENDARS[1], "skip").touched(day, day + 3 * 86_400_000_000, 10)
    assert [(from_us(one.was).day, one.at, one.why) for one in skipped] == [
        (1, None, "Labour Day"),
        (2, None, "Saturday"),
        (3, None, "Sunday"),
    ]
    (moved,) = Calendared(Cron("0 9 1 * *"), CALENDARS[1], "previous").touched(day, day + 86_400_000_000, 10)
    assert moved.at == to_us(datetime(2026, 4, 30, 9, tzinfo=UTC))


def test_a_schedule_that_never_falls_on_a_workday_has_no_slot() -> None:
    assert Calendared(Cron("0 9 * * SAT"), CALENDARS[0], "skip").after_us(FROM) is None


def test_a_century_is_counted_in_a_moment() -> None:
    slots = Calendared(Every("1s"), CALENDARS[1], "skip")
    assert slots.count_us(0, 100 * 365 * 86_400_000_000) > 2_000_000_000


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ScheduleError, match='choose "skip", "next" or "previous"'):
        Calendared(Cron("0 9 * * *"), CALENDARS[0], "later")
    with pytest.raises(ScheduleError, match="at most 48 slots a day"):
        Calendared(Every("1m"), CALENDARS[0], "next")
    with pytest.raises(InvalidError, match="every day of the week is off"):
        Calendar.make("never", 1, frozenset(range(7)), {})
    with pytest.raises(InvalidError, match="more than 60 days in a row"):
        Calendar.make("long", 1, frozenset(), {date(2026, 1, 1) + n * DAY: "" for n in range(90)})


def test_a_calendar_is_read_back_as_it_was_written() -> None:
    for calendar in CALENDARS:
        assert Calendar.from_json(calendar.name, calendar.to_json()) == calendar
