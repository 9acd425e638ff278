"""Business calendars: a slot on a day off is left out, or moved to a workday; which days those are is in the store."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from solocron import InvalidError, NotFoundError, Scheduler, cron
from solocron.clock import to_us
from solocron.stores.memory import MemoryStore, World
from solocron.testing.cluster import Cluster

HOUR = 3_600_000_000
THURSDAY = datetime(2026, 4, 30, 8, tzinfo=UTC)
LABOUR_DAY = {date(2026, 5, 1): "Labour Day"}


def bank(at: datetime = THURSDAY) -> tuple[Scheduler, MemoryStore]:
    store = MemoryStore(world=World(clock=lambda: to_us(at)))
    scheduler = Scheduler(store)
    scheduler.calendar("bank", holidays=LABOUR_DAY)
    return scheduler, store


def days(scheduler: Scheduler, job: str, n: int = 3) -> list[str]:
    return [f"{slot:%a %d %H:%M}" for slot in scheduler.upcoming(job, n)]


def test_days_off_are_left_out_and_say_why() -> None:
    scheduler, store = bank()
    scheduler.cron("0 9 * * *", name="settlement", calendar="bank")(lambda: None)
    scheduler.tick()
    assert days(scheduler, "settlement") == ["Thu 30 09:00", "Mon 04 09:00", "Tue 05 09:00"]
    assert scheduler.upcoming_changes("settlement", 2) == [
        "Fri 2026-05-01 09:00 is left out: Labour Day (bank)",
        "Sat 2026-05-02 09:00 is left out: Saturday (bank)",
        "Sun 2026-05-03 09:00 is left out: Sunday (bank)",
    ]
    store.shift_clock(HOUR)
    scheduler.tick()
    store.shift_clock(4 * 24 * HOUR)
    scheduler.tick()
    ran = [(f"{run.slot:%d}", run.status, run.count) for run in scheduler.runs("settlement")]
    assert sorted(ran) == [("03", "skipped", 3), ("04", "succeeded", 1), ("30", "succeeded", 1)]
    (left_out,) = scheduler.runs("settlement", status="skipped")
    assert left_out.reason == "calendar bank, revision 1: Sunday"


@pytest.mark.parametrize(
    ("rule", "slots"),
    [("next", ["Mon 04 09:00", "Mon 01 09:00"]), ("previous", ["Thu 30 09:00", "Mon 01 09:00"])],
)
def test_a_slot_on_a_day_off_may_move_to_a_workday(rule: str, slots: list[str]) -> None:
    """The first of May is a holiday, and then comes a weekend; the first of June is a Monday."""
    scheduler, _ = bank()
    scheduler.cron("0 9 1 * *", name="fees", calendar="bank", on_holiday=rule)(lambda: None)
    scheduler.tick()
    assert days(scheduler, "fees", 2) == slots


def test_a_moved_slot_never_doubles_a_regular_one() -> None:
    scheduler, _ = bank()
    scheduler.cron("0 9 * * *", name="daily", calendar="bank", on_holiday="next")(lambda: None)
    scheduler.tick()
    assert days(scheduler, "daily") == ["Thu 30 09:00", "Mon 04 09:00", "Tue 05 09:00"]


def test_changing_a_calendar_is_a_new_revision_for_every_job_and_node() -> None:
    """What is in the past was decided by the old one; the same content again is no change."""
    scheduler, store = bank()
    scheduler.cron("0 9 * * *", name="settlement", calendar="bank")(lambda: None)
    scheduler.tick()
    other = Scheduler(store)
    changed = other.calendar("bank", holidays={**LABOUR_DAY, date(2026, 5, 4): "a bridge day"})
    assert (changed.revision, changed.jobs) == (2, ("settlement",))
    assert days(scheduler, "settlement", 2) == ["Thu 30 09:00", "Tue 05 09:00"]
    scheduler.tick()
    assert days(scheduler, "settlement", 2) == ["Thu 30 09:00", "Tue 05 09:00"], "its declaration says nothing else"
    assert other.calendar("bank", holidays={**LABOUR_DAY, date(2026, 5, 4): "a bridge day"}).revision == 2
    (seen,) = scheduler.calendars()
    assert (seen.name, seen.revision, seen.weekend, seen.jobs) == ("bank", 2, ("sat", "sun"), ("settlement",))


def test_nodes_that_have_not_heard_of_a_revision_fetch_it_first() -> None:
    @cron("0 * * * *", name="hourly", calendar="bank")
    def hourly() -> None: ...

    cluster = Cluster(nodes=0, lease="3m", start=datetime(2026, 4, 30, 20, 30, tzinfo=UTC))
    person = cluster.fleet.join("person")

    def change(*holidays: date) -> None:
        person.process.spawn(lambda: person.scheduler.calendar("bank", holidays=holidays), "person")
        cluster.run("1s")

    change(*LABOUR_DAY)
    for node in range(3):
        cluster.start(node, hourly)
    cluster.run("1h")
    change()
    cluster.run("4h")
    change(*LABOUR_DAY)
    cluster.run("3h")
    evening = [datetime(2026, 4, 30, hour, tzinfo=UTC) for hour in (21, 22, 23)]
    night = [datetime(2026, 5, 1, hour, tzinfo=UTC) for hour in (0, 1)]
    cluster.assert_ran("hourly", slots=evening + night)


def test_a_calendar_that_is_not_there_is_refused_at_start() -> None:
    scheduler, _ = bank()
    scheduler.cron("0 9 * * *", name="settlement", calendar="banc")(lambda: None)
    with pytest.raises(NotFoundError, match=r"settlement names the calendar 'banc'.*did you mean 'bank'"):
        scheduler.start()
    with pytest.raises(NotFoundError, match="Nothing was added"):
        scheduler.add("data", "settlement", "0 9 * * *", calendar="banc")


def test_what_makes_no_sense_is_refused() -> None:
    scheduler, _ = bank()
    with pytest.raises(InvalidError, match="needs a calendar="):
        scheduler.cron("0 9 * * *", on_holiday="next")
    with pytest.raises(InvalidError, match='choose "skip" or "next" or "previous"'):
        scheduler.cron("0 9 * * *", calendar="bank", on_holiday="later")
    with pytest.raises(InvalidError, match="at most 48 slots a day"):
        scheduler.every("1m", calendar="bank", on_holiday="next")
    with pytest.raises(InvalidError, match="weekend='sonntag'"):
        scheduler.calendar("bank", weekend=("sonntag",))
    with pytest.raises(InvalidError, match="is not a date"):
        scheduler.calendar("bank", holidays=["2026-05-01"])  # type: ignore[list-item]
    assert scheduler.calendars()[0].revision == 1
