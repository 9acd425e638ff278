"""The plan of a fleet: load by the hour, herds and quieter minutes, clock changes, what waits at a limit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solocron import Cron, Every
from solocron.clock import SECOND, from_us, to_us
from solocron.preview import PlannedJob, make_plan
from solocron.preview.clock_notes import clock_notes
from solocron.preview.herds import Quieter, find_herds, horizon
from solocron.preview.hourly_load import end_of_days, hourly_load, hours
from solocron.preview.limit_queue import forecast_limits
from solocron.schedules import Bounded, Calendar, Calendared, Schedule, spread

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def at(text: str) -> int:
    return to_us(datetime.fromisoformat(text).replace(tzinfo=UTC))


START = at("2026-11-17T07:10:00")


def job(name: str, schedule: str | Schedule, **more: object) -> PlannedJob:
    rule = Cron(schedule) if isinstance(schedule, str) else schedule
    return PlannedJob(name=name, schedule=rule, **more)  # type: ignore[arg-type]


# --- load ------------------------------------------------------------------------------------------------------------


def test_the_days_end_at_midnight_of_the_zone() -> None:
    assert end_of_days(START, 1, "UTC") == at("2026-11-18T00:00:00")
    assert end_of_days(START, 7, "America/New_York") == at("2026-11-24T05:00:00")


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "Europe/Vienna", "Australia/Lord_Howe"])
@pytest.mark.parametrize("start", ["2026-03-28T12:34:56", "2026-10-24T12:34:56", "2026-04-04T03:00:00"])
def test_every_hour_begins_at_a_full_hour_of_the_zones_clock(zone: str, start: str) -> None:
    begin = at(start)
    found = hours(begin, begin + 3 * DAY, zone)
    assert found[0] <= begin < found[1]
    assert all(low < high <= low + HOUR for low, high in pairwise(found))
    assert {from_us(one).astimezone(ZoneInfo(zone)).minute for one in found} <= {0, 30 * (zone.endswith("Howe"))}


def test_slots_count_from_the_start_on_and_before_the_end() -> None:
    load = hourly_load([job("a", "10 * * * *")], START, START + HOUR, "UTC")
    assert load == {at("2026-11-17T07:00:00"): 1, at("2026-11-17T08:00:00"): 0}


@given(
    expression=st.sampled_from(["*/7 * * * *", "* * * * *", "0 3 * * *", "*/20 * * * * *", "15 9-17 * * MON-FRI"]),
    zone=st.sampled_from(["UTC", "Europe/Vienna", "Asia/Kolkata"]),
    runs=st.integers(1, 3),
    offset=st.integers(0, 3 * 86_400),
)
def test_both_ways_of_counting_agree_with_a_list_of_the_slots(
    expression: str, zone: str, runs: int, offset: int
) -> None:
    start = START + offset * SECOND
    end = start + DAY + 1
    rule = Cron(expression, tz=zone)
    load = hourly_load([job("a", rule, runs=runs), job("b", rule)], start, end, zone)
    expected = dict.fromkeys(load, 0)
    slot = rule.after_us(start - 1)
    while slot is not None and slot < end:
        expected[max(one for one in load if one <= slot)] += runs + 1
        slot = rule.after_us(slot)
    assert load == expected


def test_slots_outside_of_the_bounds_do_not_count() -> None:
    hourly = job("a", Bounded(Every("1h"), "2026-11-18T03:00Z", "2026-11-18T05:00Z"))
    assert sum(hourly_load([hourly], START, START + 2 * DAY, "UTC").values()) == 3


def test_slots_that_are_decided_or_paused_do_not_count() -> None:
    load = hourly_load([job("a", "0 * * * *", begins=START + 2 * HOUR)], START, START + 4 * HOUR, "UTC")
    assert sum(load.values()) == 2


# --- herds -----------------------------------------------------------------------------------------------------------


def test_jobs_that_meet_in_one_minute_are_a_herd_with_its_occurrences() -> None:
    jobs = [job(f"nightly-{n}", "0 2 * * *") for n in range(6)] + [job("late", "30 0 2 * * *")]
    (herd,) = find_herds(jobs, START, START + 3 * DAY, least=5)
    assert herd.jobs == ("late", *(f"nightly-{n}" for n in range(6)))
    assert (herd.runs, herd.in_one_second, herd.times) == (7, 6, 3)
    assert herd.first == at("2026-11-18T02:00:00")


def test_one_job_with_many_slots_is_not_a_herd() -> None:
    assert find_herds([job("a", Every("1s"))], START, START + HOUR, least=2) == []


def test_the_quieter_minute_is_the_least_busy_one_away_from_neighbours() -> None:
    busy = [job(f"every-{n}", f"{n} 2 * * *") for n in range(1, 60) if n not in (7, 20, 21, 22)]
    jobs = [*(job(f"n{n}", "0 2 * * *") for n in range(5)), *busy]
    (herd,) = find_herds(jobs, START, START + 2 * DAY, least=5)
    assert herd.quieter == Quieter(21, 0)


def test_a_quieter_minute_is_judged_by_the_busiest_occurrence() -> None:
    jobs = [*(job(f"n{n}", "0 * * * *") for n in range(5)), job("once", "1-50 3 * * *")]
    found = find_herds(jobs, START, START + DAY, least=5)
    assert found[0].quieter is not None
    assert found[0].quieter.minutes_later > 50


def test_where_no_minute_is_quieter_there_is_none() -> None:
    jobs = [job(f"n{n}", "* * * * *") for n in range(5)]
    (herd,) = find_herds(jobs, START, START + HOUR, least=5)
    assert herd.times == 60
    (herd,) = find_herds(jobs, START, START + 2 * HOUR, least=5)
    assert herd.quieter is None


def test_a_fleet_with_too_many_slots_is_looked_at_for_a_shorter_time() -> None:
    jobs = [job(f"n{n}", Every("1s")) for n in range(5)]
    assert horizon(jobs, START, START + 7 * DAY, 100_000) < START + DAY
    assert horizon(jobs, START, START + 7 * DAY, 1) == START + HOUR
    assert horizon(jobs[:1], START, START + HOUR) == START + HOUR


# --- clock changes ---------------------------------------------------------------------------------------------------


def test_a_slot_that_a_clock_change_skips_or_repeats_is_noted_by_date() -> None:
    vienna = Cron("30 2 * * *", tz="Europe/Vienna")
    friday = Calendar.make("work", 1, frozenset(), {})
    jobs = [
        job("vienna", vienna),
        job("spread", spread(vienna, "10m", "spread")),
        job("workdays", Calendared(vienna, friday)),
        job("utc", "30 2 * * *"),
        job("hourly", Cron("30 * * * *", tz="Europe/Vienna")),
    ]
    found = clock_notes(jobs, at("2026-10-20T00:00:00"), at("2027-04-01T00:00:00"))
    assert [(note.job, note.note[:10]) for note in found] == [
        (name, date) for date in ("2026-10-25", "2027-03-28") for name in ("spread", "vienna", "workdays")
    ]
    assert clock_notes(jobs, START, START + 7 * DAY) == []


# --- limits ----------------------------------------------------------------------------------------------------------


def test_runs_wait_for_a_permit_as_long_as_those_before_them_take() -> None:
    jobs = [job(f"n{n}", "0 2 * * *", limit=("db", 2), typical=10 * MINUTE) for n in range(5)]
    (found,) = forecast_limits(jobs, START, START + DAY)
    assert (found.limit, found.most, found.runs, found.due_at_once) == ("db", 2, 5, 5)
    assert (found.waiting, found.longest_wait) == (3, 20 * MINUTE)
    assert found.worst == at("2026-11-18T02:00:00")
    assert found.collides


def test_a_limit_with_room_does_not_collide() -> None:
    jobs = [job(f"n{n}", f"{n} 2 * * *", limit=("db", 1), typical=30 * SECOND) for n in range(5)]
    (found,) = forecast_limits(jobs, START, START + DAY)
    assert not found.collides
    assert forecast_limits([job("free", "* * * * *")], START, START + DAY) == []


def test_a_run_that_waits_past_start_within_is_missed_and_takes_no_permit() -> None:
    slow = job("a", "0 2 * * *", limit=("db", 1), typical=HOUR)
    hasty = job("b", "10 2 * * *", limit=("db", 1), typical=HOUR, start_within=5 * MINUTE)
    last = job("c", "20 2 * * *", limit=("db", 1), typical=HOUR)
    (found,) = forecast_limits([slow, hasty, last], START, START + DAY)
    assert (found.missed, found.waiting, found.longest_wait) == (1, 2, 50 * MINUTE)


def test_a_job_without_history_is_named_and_still_counts_as_due() -> None:
    jobs = [job(f"n{n}", "0 2 * * *", limit=("db", 2), runs=2) for n in range(2)]
    (found,) = forecast_limits(jobs, START, START + DAY)
    assert (found.due_at_once, found.waiting, found.unknown) == (4, 0, ("n0", "n1"))
    assert found.collides


@given(
    slots=st.lists(st.integers(0, 40), min_size=1, max_size=12),
    takes=st.lists(st.integers(0, 20), min_size=12, max_size=12),
    most=st.integers(1, 4),
)
def test_never_more_runs_at_once_than_permits(slots: list[int], takes: list[int], most: int) -> None:
    """The longest wait is that of a queue in order of slots, played minute by minute."""
    jobs = [
        job(f"n{n}", f"{minute} 8 17 11 *", limit=("db", most), typical=takes[n] * MINUTE)
        for n, minute in enumerate(slots)
    ]
    (found,) = forecast_limits(jobs, START, START + DAY)
    running: list[int] = []
    waits = []
    for minute, n in sorted((minute, n) for n, minute in enumerate(slots)):
        start = minute
        while sum(end > start for end in running) >= most:
            start += 1
        running.append(start + takes[n])
        waits.append(start - minute)
    assert found.longest_wait == max(waits) * MINUTE
    assert found.waiting == sum(wait > 0 for wait in waits)


# --- the whole -------------------------------------------------------------------------------------------------------


def test_a_plan_of_no_jobs_has_its_hours() -> None:
    plan = make_plan([], start=START, days=2, zone="UTC", herd=5)
    assert (plan.runs, plan.herds, plan.limits, len(plan.load)) == (0, (), (), 17 + 24)


def test_a_week_of_a_job_every_second_is_counted_and_not_listed() -> None:
    plan = make_plan([job("a", Every("1s"))], start=START, days=7, zone="UTC", herd=5)
    assert plan.runs == (plan.end - START) // SECOND
    assert plan.herds_until < plan.end
    assert timedelta(microseconds=plan.end - plan.start) > timedelta(days=6)
