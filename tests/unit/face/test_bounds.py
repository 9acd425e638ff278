"""`starts=` and `ends=`: nothing is due before and after; what was due in between is decided as ever."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from solocron import Cron, InvalidError, Scheduler, cron, every
from solocron.schedules import Bounded
from solocron.testing.clock import ManualClock

CHRISTMAS = datetime(2026, 12, 24, tzinfo=UTC)


def at(day: int, hour: int = 12) -> datetime:
    return datetime(2027, 1, day, hour, tzinfo=UTC)


@cron("0 9 * * *", tz="Europe/Paris", starts=date(2027, 1, 2), ends="2027-01-04")
def sale() -> None: ...


def test_a_job_runs_from_its_first_day_to_its_last() -> None:
    clock = ManualClock(CHRISTMAS)
    scheduler = clock.scheduler(sale)
    scheduler.tick()
    assert scheduler.get_job("sale").next == at(2, 8)
    ran = []
    for day in range(1, 7):
        clock.move_to(at(day))
        ran += [view.slot for view in scheduler.tick()]
    assert ran == [at(2, 8), at(3, 8), at(4, 8)]
    view = scheduler.get_job("sale")
    assert (view.next, view.due_at, scheduler.upcoming("sale")) == (None, None, [])
    assert view.schedule == "At 09:00 every day, Europe/Paris, from 2027-01-02, until 2027-01-04"


def test_a_slot_that_was_missed_before_the_end_is_caught_up_after_it() -> None:
    clock = ManualClock(at(3))
    scheduler = clock.scheduler(sale)
    scheduler.tick()
    clock.move_to(at(20))
    assert [view.slot for view in scheduler.tick()] == [at(4, 8)], "catch_up is latest"
    assert scheduler.tick() == []


def test_the_end_of_a_job_can_be_moved_and_nothing_is_invented() -> None:
    clock = ManualClock(CHRISTMAS)
    scheduler = clock.scheduler()
    scheduler.register(lambda: None, name="send")
    scheduler.add("promo", "send", "0 9 * * *", ends="2026-12-31")
    scheduler.tick()
    clock.move_to(at(10))
    scheduler.tick()
    before = len(scheduler.runs("promo"))
    view = scheduler.add("promo", "send", "0 9 * * *", ends="2027-01-15")
    assert view.next == at(11, 9)
    assert scheduler.tick() == []
    assert len(scheduler.runs("promo")) == before, "the days after the first end have no slots, missed or other"


def test_every_and_spread_keep_to_the_bounds() -> None:
    clock = ManualClock(CHRISTMAS)

    @every("1h", spread="30m", ends=datetime(2026, 12, 24, 3, tzinfo=UTC))
    def hourly() -> None: ...

    scheduler = clock.scheduler(hourly)
    scheduler.tick()
    slots = scheduler.upcoming("hourly")
    assert len(slots) == 3
    assert all(slot <= datetime(2026, 12, 24, 3, tzinfo=UTC) for slot in slots), "the shifted slots count"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"starts": "2027-01-04", "ends": "2027-01-02"}, "ends='2027-01-02' is before starts='2027-01-04'"),
        ({"starts": "soon"}, "starts='soon' cannot be read. Give a date"),
        ({"ends": datetime(2027, 1, 1)}, "has no time zone. Give a date"),  # noqa: DTZ001 - the mistake under test
        ({"ends": 20270101}, "ends=20270101 is neither a date nor an instant"),
        ({"starts": "2027-01-04T10:00Z", "ends": "2027-01-04T11:00Z"}, "there is no slot in it: At 09:00 every day"),
    ],
)
def test_bounds_that_cannot_be_are_refused_and_nothing_is_added(options: Any, message: str) -> None:
    scheduler = Scheduler("memory://")
    scheduler.register(lambda: None, name="send")
    with pytest.raises(InvalidError, match=message):
        scheduler.add("promo", "send", "0 9 * * *", **options)
    assert scheduler.jobs() == []


def test_a_schedule_of_ones_own_has_bounds_too() -> None:
    class Noons:
        def after(self, t: datetime) -> datetime:
            return Cron("0 12 * * *").after(t) or t

        def before(self, t: datetime) -> datetime:
            return Cron("0 12 * * *").before(t) or t

        def between(self, a: datetime, b: datetime) -> Any:
            return Cron("0 12 * * *").between(a, b)

        def count(self, a: datetime, b: datetime) -> int:
            return Cron("0 12 * * *").count(a, b)

        def describe(self) -> str:
            return "noon"

    clock = ManualClock(CHRISTMAS)

    @cron(Noons(), name="lunch", ends="2026-12-24")
    def lunch() -> None: ...

    scheduler = clock.scheduler(lunch)
    scheduler.tick()
    assert scheduler.upcoming("lunch") == [CHRISTMAS.replace(hour=12)]
    assert clock.scheduler().get_job("lunch").schedule == "noon, until 2026-12-24", "also where its class is not known"


def test_a_schedule_that_has_bounds_gets_no_second_ones() -> None:
    scheduler = Scheduler("memory://")
    scheduler.register(lambda: None, name="send")
    with pytest.raises(InvalidError, match="give starts= and ends= once"):
        scheduler.add("promo", "send", Bounded(Cron("0 9 * * *"), "2027-01-01"), ends="2027-02-01")
    assert scheduler.jobs() == []
