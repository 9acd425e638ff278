"""Cron expressions: what they mean, in which zone, and what is kept of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from solocron.errors import InvalidError
from solocron.schedules import Cron, Schedule, load_zone
from tests.unit.model.effort import effort
from tests.unit.schedules.oracle import assert_all_agree

NEW_YORK = "America/New_York"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def following(cron: Cron, start: str, n: int = 3) -> list[str]:
    """The next slots, read on the wall in the schedule's zone."""
    info, at, found = load_zone(cron.zone).info, utc(start), []
    for _ in range(n):
        at = cron.after(at)
        assert at is not None
        assert at.tzinfo is UTC
        found.append(f"{at.astimezone(info):%m-%d %H:%M:%S}".removesuffix(":00"))
    return found


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*/20 * * * *", ["01-01 00:20", "01-01 00:40", "01-01 01:00"]),
        ("0 9 * * MON-FRI", ["01-01 09:00", "01-02 09:00", "01-05 09:00"]),
        ("0 9 * * mon-fri", ["01-01 09:00", "01-02 09:00", "01-05 09:00"]),
        ("0 0 1 JAN,jul *", ["07-01 00:00", "01-01 00:00", "07-01 00:00"]),
        ("30 6 L * *", ["01-31 06:30", "02-28 06:30", "03-31 06:30"]),
        ("30 6 LW * *", ["01-30 06:30", "02-27 06:30", "03-31 06:30"]),
        ("0 8 * * MON#2", ["01-12 08:00", "02-09 08:00", "03-09 08:00"]),
        ("0 8 * * 5L", ["01-30 08:00", "02-27 08:00", "03-27 08:00"]),
        ("0 0 * * 7", ["01-04 00:00", "01-11 00:00", "01-18 00:00"]),
        ("0 0 29 2 *", ["02-29 00:00", "02-29 00:00", "02-29 00:00"]),
        ("0 0 13 * FRI", ["01-02 00:00", "01-09 00:00", "01-13 00:00"]),  # either, as both are given
        ("0 0 */2 * MON", ["01-05 00:00", "01-19 00:00", "02-09 00:00"]),  # both, as one begins with a star
        ("0 12 ? * WED", ["01-07 12:00", "01-14 12:00", "01-21 12:00"]),
        ("0 12 15 * ?", ["01-15 12:00", "02-15 12:00", "03-15 12:00"]),
        ("  0\t12   15 * * ", ["01-15 12:00", "02-15 12:00", "03-15 12:00"]),
        ("*/25 * * * * *", ["01-01 00:00:25", "01-01 00:00:50", "01-01 00:01"]),
        ("10,40 59 23 * * *", ["01-01 23:59:10", "01-01 23:59:40", "01-02 23:59:10"]),
        ("@hourly", ["01-01 01:00", "01-01 02:00", "01-01 03:00"]),
        ("@daily", ["01-02 00:00", "01-03 00:00", "01-04 00:00"]),
        ("@Midnight", ["01-02 00:00", "01-03 00:00", "01-04 00:00"]),
        ("@weekly", ["01-04 00:00", "01-11 00:00", "01-18 00:00"]),
        ("@monthly", ["02-01 00:00", "03-01 00:00", "04-01 00:00"]),
        ("@yearly", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
        ("@annually", ["01-01 00:00", "01-01 00:00", "01-01 00:00"]),
    ],
)
def test_an_expression_means_what_cron_users_expect(expression, expected):
    assert following(Cron(expression), "2026-01-01") == expected


def test_a_fixed_time_in_a_gap_runs_once_right_after_it():
    assert following(Cron("30 2 * * *", tz=NEW_YORK), "2026-03-07T12:00") == [
        "03-08 03:00",
        "03-09 02:30",
        "03-10 02:30",
    ]


def test_several_fixed_times_in_one_gap_are_one_slot():
    cron = Cron("0,15,30 2,3 * * *", tz=NEW_YORK)
    assert following(cron, "2026-03-08T06:00") == ["03-08 03:00", "03-08 03:15", "03-08 03:30"]


def test_a_fixed_time_in_a_gap_may_be_skipped():
    cron = Cron("30 2 * * *", tz=NEW_YORK, dst={"gap": "skip"})
    assert following(cron, "2026-03-07T12:00", 2) == ["03-09 02:30", "03-10 02:30"]


@pytest.mark.parametrize(
    ("fold", "expected"),
    [(None, ["05:30"]), ("first", ["05:30"]), ("last", ["06:30"]), ("both", ["05:30", "06:30"])],
)
def test_a_fixed_time_in_a_fold_runs_as_chosen(fold, expected):
    cron = Cron("30 1 * * *", tz=NEW_YORK, dst=fold and {"fold": fold})
    slots = cron.between(utc("2026-11-01"), utc("2026-11-02"))
    assert [f"{slot:%H:%M}" for slot in slots] == expected


def test_a_wildcard_matches_every_reading_that_occurs():
    cron = Cron("*/30 1-2 * * *", tz=NEW_YORK)
    assert cron.count(utc("2026-03-08"), utc("2026-03-09")) == 2  # 02:00 and 02:30 do not exist
    assert cron.count(utc("2026-11-01"), utc("2026-11-02")) == 6  # 01:00 and 01:30 exist twice


def test_seconds_follow_the_same_rules():
    """The first instant after a gap, whatever the seconds; a fold is passed through once."""
    cron = Cron("*/20 30 1,2 * * *", tz=NEW_YORK)
    gap = [f"{slot:%H:%M:%S}" for slot in cron.between(utc("2026-03-08"), utc("2026-03-09"))]
    assert gap == ["06:30:00", "06:30:20", "06:30:40", "07:00:00"]
    fold = [f"{slot:%H:%M:%S}" for slot in cron.between(utc("2026-11-01"), utc("2026-11-02"))]
    assert fold == ["05:30:00", "05:30:20", "05:30:40", "07:30:00", "07:30:20", "07:30:40"]
    assert_all_agree(
        cron, utc("2026-03-07"), utc("2026-03-10"), list(cron.between(utc("2026-03-07"), utc("2026-03-10")))
    )


def test_bounds_are_strict_below_and_included_above():
    cron = Cron("0 * * * *")
    on, just_after = utc("2026-01-01T05:00"), utc("2026-01-01T05:00:00.000001")
    assert cron.after(on) == utc("2026-01-01T06:00")
    assert cron.before(on) == utc("2026-01-01T04:00")
    assert cron.before(just_after) == on
    assert list(cron.between(on, utc("2026-01-01T06:00"))) == [utc("2026-01-01T06:00")]
    assert cron.count(on, utc("2026-01-01T06:00")) == 1


def test_instants_may_be_given_in_any_zone_but_not_in_none():
    cron = Cron("0 9 * * *", tz="Europe/Paris")
    assert cron.after(datetime(2026, 7, 1, 9, tzinfo=ZoneInfo("Asia/Tokyo"))) == utc("2026-07-01T07:00")
    for ask in (cron.after, cron.before, lambda t: cron.count(t, t), lambda t: cron.between(t, t)):
        with pytest.raises(InvalidError, match="not an aware datetime"):
            ask(datetime(2026, 7, 1))  # noqa: DTZ001 - that is the point


def test_before_1970_and_after_2038_it_is_the_same():
    cron = Cron("30 12 * * *", tz="Europe/Dublin")
    assert following(cron, "1969-12-30T11:00", 2) == ["12-30 12:30", "12-31 12:30"]
    assert following(cron, "2099-07-01T12:00", 2) == ["07-02 12:30", "07-03 12:30"]


def test_the_calendar_ends_without_an_error():
    start, end = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    for tz in ("UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"):
        cron = Cron("0 0 1 1 *", tz=tz)
        assert cron.after(end) is None
        assert cron.before(start) is None
        assert cron.after(start).year <= 3
        assert cron.before(end).year >= 9998
    assert Cron("0 0 1 1 *").count(start, end) == 9997


def test_a_year_of_seconds_is_counted_without_walking_it():
    cron = Cron("* * * * * *", tz="Europe/Berlin")
    counts: list[int] = []
    assert effort(lambda: counts.append(cron.count(utc("2026-01-01"), utc("2027-01-01"))), 0.01) < 0.01
    assert counts[0] == 365 * 86_400


def test_h_is_the_same_on_every_replica_for_ever():
    """These numbers are a contract: changing them moves everyone's jobs."""
    assert Cron("H H * * *", seed="jobname").fields == ("0", "15", "20", "*", "*", "*")
    assert Cron("H/15 H(1-5) H H H", seed="report").fields == ("0", "3-59/15", "1", "19", "12", "6")
    assert Cron("H * * * * *", seed="report").fields[0] == "18"


def test_h_differs_between_jobs_and_stays_in_its_range():
    names = [f"job-{number}" for number in range(500)]
    minutes = {Cron("H * * * *", seed=name).fields[1] for name in names}
    assert len(minutes) == 60
    assert {Cron("0 H(9-17) * * *", seed=name).fields[2] for name in names} == {str(hour) for hour in range(9, 18)}
    assert {Cron("0 0 H * *", seed=name).fields[3] for name in names} == {str(day) for day in range(1, 29)}
    assert {Cron("H(10-39)/10 * * * *", seed=name).count(utc("2026-01-01"), utc("2026-01-02")) for name in names} == {
        72
    }


def test_equal_schedules_are_equal_and_share_their_parsed_form():
    one, two = (
        Cron("0 9 * * *", tz=NEW_YORK, seed="a"),
        Cron("0  9 * * *", tz=NEW_YORK, dst={"fold": "first"}, seed="b"),
    )
    assert one == two
    assert hash(one) == hash(two)
    assert one._line is two._line
    assert one != Cron("0 9 * * *")
    assert one != Cron("0 9 * * *", tz=NEW_YORK, dst={"gap": "skip"})
    assert Cron("H 9 * * *", seed="a") != Cron("H 9 * * *", seed="b")
    assert one != "0 9 * * *"


def test_a_schedule_is_immutable_and_says_what_it_is():
    cron = Cron("H 9 * * *", tz=NEW_YORK, dst={"gap": "skip"}, seed="report")
    with pytest.raises(AttributeError, match="immutable"):
        cron.zone = "UTC"
    assert eval(repr(cron), {"Cron": Cron}) == cron
    assert isinstance(cron, Schedule)
    assert cron.dst == {"gap": "skip", "fold": "first"}


def test_a_thousand_declared_jobs_are_cheap():
    import tracemalloc

    names = [f"job-{number}" for number in range(1000)]
    zones = ["UTC", NEW_YORK, "Europe/Paris", "Asia/Tokyo"]
    warm = [Cron(f"{minute} 0 * * *", tz=tz) for minute in range(60) for tz in zones]  # tables that all share
    tracemalloc.start()
    try:
        declared = [Cron("H H * * *", tz=zones[number % 4], seed=name) for number, name in enumerate(names)]
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(declared) + len(warm) > 1000
    assert size < 1_000_000


@pytest.mark.parametrize("tz", [NEW_YORK, "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu"])
def test_a_nominal_reading_names_one_instant(tz):
    cron = Cron("*/10 * * * *", tz=tz)
    for slot in cron.between(utc("2025-10-01"), utc("2025-11-10")):
        us = int(slot.timestamp()) * 1_000_000
        assert cron.instant_of(cron.nominal(us)) == us


def test_a_nominal_reading_is_the_local_time_and_says_when_it_came_again():
    cron = Cron("30 1 * * *", tz=NEW_YORK, dst={"fold": "both"})
    first, second = (int(slot.timestamp()) * 1_000_000 for slot in cron.between(utc("2026-11-01"), utc("2026-11-02")))
    assert cron.nominal(first) == "2026-11-01T01:30:00"
    assert cron.nominal(second) == "2026-11-01T01:30:00#1"
    assert Cron("30 1 * * *").nominal(first) is None
    assert Cron("30 1 * * *").instant_of("2026-11-01T01:30:00") is None


@pytest.mark.parametrize("bad", ["", "yesterday", "2026-13-01T00:00:00", "#1"])
def test_what_is_no_reading_is_refused(bad):
    with pytest.raises(InvalidError, match="not a local reading"):
        Cron("0 9 * * *", tz=NEW_YORK).instant_of(bad)


@pytest.mark.invariant("I18: every node finds the same slots")
@pytest.mark.parametrize("expression", ["30 2 * * *", "30 1 * * *", "0,30 1-3 * * *", "0 9 * * *"])
@pytest.mark.parametrize("dst", [{}, {"fold": "last"}, {"gap": "skip"}, {"gap": "skip", "fold": "last"}])
@pytest.mark.parametrize("month", ["03", "11"])
def test_with_different_zone_data_a_reading_is_decided_once(expression, dst, month):
    """Two nodes take turns; for one the clocks are set in spring and autumn, for the other that rule is gone.

    No reading is decided twice, none is passed over, except those that a node's own clocks never show.
    """
    nodes = [Cron(expression, tz=tz, dst=dst) for tz in (NEW_YORK, "Etc/GMT+5")]
    for turn in range(2):
        cursor, decided = f"2026-{month}-01T00:00:00" if month == "03" else "2026-10-25T00:00:00", []
        for number in range(80):
            node = nodes[(number + turn) % 2]
            slot = node.after_us(node.instant_of(cursor))
            cursor = node.nominal(slot)
            decided.append(cursor.removesuffix("#1"))
        assert decided == sorted(set(decided))
        expected = [f"{slot:%Y-%m-%dT%H:%M:%S}" for slot in _readings(expression, decided[0], decided[-1])]
        missing = [reading for reading in expected if reading not in decided]
        made_up = [reading for reading in decided if reading not in expected]
        assert all(reading.startswith("2026-03-08T02") for reading in missing)
        assert all(reading == "2026-03-08T03:00:00" for reading in made_up)
        assert not made_up or missing  # it stands in for one that was not decided already


def _readings(expression: str, first: str, last: str) -> list[datetime]:
    return list(Cron(expression).between(utc(first) - timedelta(seconds=1), utc(last)))
