"""Asking any schedule in microseconds, a user's own class too, without ever believing it blindly."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from solocron.clock import from_us, to_us
from solocron.errors import ScheduleError
from solocron.schedules import Cron, Schedule, dump, instants, load, spread

START = to_us(datetime(2026, 1, 1, tzinfo=UTC))
HOUR = 3_600_000_000


class Hourly:
    """A user's own schedule, in a zone of its own."""

    def after(self, t: datetime) -> datetime | None:
        return from_us((to_us(t) // HOUR + 1) * HOUR).astimezone()

    def before(self, t: datetime) -> datetime | None:
        return from_us((to_us(t) - 1) // HOUR * HOUR)

    def between(self, a: datetime, b: datetime) -> Iterator[datetime]:
        yield from ()

    def count(self, a: datetime, b: datetime) -> int:
        return to_us(b) // HOUR - to_us(a) // HOUR

    def describe(self) -> str:
        return "On the hour"


def test_a_class_with_the_five_methods_is_a_schedule():
    assert isinstance(Hourly(), Schedule)
    assert not isinstance(object(), Schedule)


@pytest.mark.parametrize("schedule", [Hourly(), Cron("0 * * * *")])
def test_built_in_and_own_schedules_answer_alike(schedule):
    assert instants.after(schedule, START) == START + HOUR
    assert instants.after(schedule, START + 1) == START + HOUR
    assert instants.before(schedule, START) == START - HOUR
    assert instants.count(schedule, START, START + 24 * HOUR) == 24
    assert instants.count(schedule, START, START) == 0
    assert instants.count(schedule, START, START - HOUR) == 0
    assert list(instants.between(schedule, START, START + 2 * HOUR)) == [START + HOUR, START + 2 * HOUR]
    assert instants.nominal(schedule, START) is None
    assert instants.instant_of(schedule, "2026-01-01T00:00:00") is None
    assert instants.zone(schedule) == "UTC"


def test_a_schedule_with_a_zone_has_readings():
    paris = Cron("0 * * * *", tz="Europe/Paris")
    assert instants.nominal(paris, START) == "2026-01-01T01:00:00"
    assert instants.instant_of(paris, "2026-01-01T01:00:00") == START
    assert instants.zone(paris) == "Europe/Paris"


@pytest.mark.parametrize("wrong", [timedelta(), timedelta(microseconds=-1), timedelta(days=-1)])
def test_a_schedule_that_does_not_move_on_is_refused_and_never_spun_on(wrong):
    class Stuck(Hourly):
        def after(self, t):
            return t + wrong

        def before(self, t):
            return t - wrong

    for ask in (instants.after, instants.before, lambda s, us: next(instants.between(s, us, us + HOUR))):
        with pytest.raises(ScheduleError, match=r"^Stuck\.(after|before)\(2026-01-01T00:00:00Z\) returned"):
            ask(Stuck(), START)
        with pytest.raises(ScheduleError):
            ask(spread(Stuck(), "1m", "job"), START)


@pytest.mark.parametrize("wrong", [datetime(2027, 1, 1), "tomorrow", 5, True])  # noqa: DTZ001
def test_what_is_no_instant_is_refused(wrong):
    class Odd(Hourly):
        def after(self, t):
            return wrong

    with pytest.raises(ScheduleError, match="not an aware datetime"):
        instants.after(Odd(), START)


@pytest.mark.parametrize("wrong", [-1, None, 2.5, "many"])
def test_what_is_no_count_is_refused(wrong):
    class Odd(Hourly):
        def count(self, a, b):
            return wrong

    with pytest.raises(ScheduleError, match="not a number of slots"):
        instants.count(Odd(), START, START + HOUR)


def test_a_schedule_that_has_ended_is_not_an_error():
    class Over(Hourly):
        def after(self, t):
            return None

        before = after

    assert instants.after(Over(), START) is None
    assert instants.before(Over(), START) is None
    assert list(instants.between(Over(), START, START + HOUR)) == []


def test_an_own_schedule_is_described_but_not_stored():
    spec = dump(Hourly())
    assert spec == {"kind": "custom", "describe": "On the hour"}
    assert load(spec) is None
    assert load(dump(spread(Hourly(), "1m", "job"))) is None
