"""Converted schedules fire at the very instants at which the real APScheduler 3 and Celery fired (see record_peers)."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.schedules import crontab

from solocron import At, Cron, Every, Scheduler, allow
from solocron.errors import InvalidError
from solocron.importers import Converted, from_apscheduler, from_celery

PEERS = json.loads((Path(__file__).parent / "peers.json").read_text())


def fires(converted: Converted, start: str, many: int) -> list[str]:
    """The next slots, as ISO texts."""
    at: datetime | None = datetime.fromisoformat(start)
    found = []
    for _ in range(many):
        assert at is not None
        at = converted.schedule.after(at)
        found.append("never" if at is None else at.isoformat())
    return found


def label(case: dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in {**case["told"], "tz": case.get("tz", "")}.items())


@pytest.mark.parametrize("case", PEERS["apscheduler"]["cases"], ids=label)
def test_an_apscheduler_trigger_fires_when_apscheduler_fired(case: dict[str, Any]) -> None:
    converted = from_apscheduler("cron", **case["told"])
    assert fires(converted, PEERS["apscheduler"]["start"], len(case["fires"])) == case["fires"]


@pytest.mark.parametrize("case", PEERS["celery"]["cases"], ids=label)
def test_a_celery_crontab_fires_when_celery_fired(case: dict[str, Any]) -> None:
    converted = from_celery(tz=case["tz"], **case["told"])
    assert fires(converted, PEERS["celery"]["start"], len(case["fires"])) == case["fires"]


def test_apscheduler_counts_weekdays_from_monday_and_celery_from_sunday() -> None:
    """The same number is another day in each of the three."""
    assert from_apscheduler("cron", day_of_week=0, hour=9, timezone="UTC").schedule == Cron("0 9 * * MON")
    assert from_celery(minute=0, hour=9, day_of_week=0).schedule == Cron("0 9 * * SUN")


def trigger_object(**fields: str) -> SimpleNamespace:
    """Shaped like a CronTrigger: every field is there, with its text."""

    class Field:
        def __init__(self, name: str, text: str) -> None:
            self.name, self.text = name, text

        def __str__(self) -> str:
            return self.text

    names = ("year", "month", "day", "week", "day_of_week", "hour", "minute", "second")
    made = [Field(name, fields.get(name, "0" if name == "second" else "*")) for name in names]
    return SimpleNamespace(fields=made, start_date=None, end_date=None, jitter=None, timezone=ZoneInfo("Europe/Paris"))


def test_a_trigger_object_is_read_field_by_field() -> None:
    """`CronTrigger.from_crontab("0 9 * * 1")` runs on Tuesday in APScheduler 3, and so it does here."""
    converted = from_apscheduler(trigger_object(minute="0", hour="9", day_of_week="1"))
    assert converted.decorator() == '@cron("0 9 * * TUE", tz="Europe/Paris")'
    assert any("Monday = 0" in note for note in converted.notes)


def test_interval_and_date_triggers_become_every_and_at() -> None:
    assert from_apscheduler("interval", minutes=5).schedule == Every("5m")
    when = datetime(2027, 1, 1, 9, tzinfo=UTC)
    assert from_apscheduler("date", run_date=when).schedule == At(when)
    naive = from_apscheduler("date", run_date="2027-01-01T10:00:00", timezone="Europe/Paris")
    assert naive.schedule == At(when)
    trigger = SimpleNamespace(interval=timedelta(hours=2), start_date=when, end_date=None, jitter=None, timezone=UTC)
    assert from_apscheduler(trigger).schedule == Every("2h")


def test_start_date_and_end_date_become_the_first_and_the_last_instant() -> None:
    """There a date is its first moment, in the trigger's zone: `ends` as a date would last a day longer."""
    converted = from_apscheduler(
        "cron", hour=9, timezone="Europe/Paris", start_date="2040-06-01 09:00:00", end_date=date(2040, 7, 1)
    )
    assert converted.options == {"starts": "2040-06-01T07:00:00Z", "ends": "2040-06-30T22:00:00Z"}
    assert converted.notes == (
        "start_date becomes starts=2040-06-01T07:00:00Z.",
        "end_date becomes ends=2040-06-30T22:00:00Z.",
    )
    assert converted.decorator() == (
        '@cron("0 9 * * *", tz="Europe/Paris", starts="2040-06-01T07:00:00Z", ends="2040-06-30T22:00:00Z")'
    )
    over = from_apscheduler("cron", hour=9, timezone="UTC", start_date="2020-01-01")
    assert over.options == {}, "what has begun needs no beginning"


def test_a_period_begins_where_it_was_told_to_and_not_a_period_after_it_was_made() -> None:
    soon, later = datetime.now(UTC) + timedelta(hours=1), datetime(2040, 6, 1, tzinfo=UTC)
    assert from_apscheduler("interval", hours=2, start_date=soon).options == {}, "the default of APScheduler"
    assert from_apscheduler("interval", hours=2, start_date=later).options == {"starts": "2040-06-01T00:00:00Z"}
    ends = from_apscheduler("interval", hours=2, end_date="2040-06-01 12:00:00", timezone="UTC")
    assert ends.options == {"ends": "2040-06-01T12:00:00Z"}
    with pytest.raises(InvalidError, match="end_date has no zone; give timezone= as well"):
        from_apscheduler("interval", hours=2, end_date="2040-06-01 12:00:00")


def test_the_options_of_add_job_become_options_of_the_declaration() -> None:
    converted = from_apscheduler(
        "cron", hour=9, timezone="UTC", id="digest", max_instances=3, coalesce=False, misfire_grace_time=90, jitter=30
    )
    assert converted.options == {
        "name": "digest", "overlap": allow(3), "catch_up": "all", "start_within": "90s", "spread": "30s",
    }  # fmt: skip
    assert converted.decorator() == (
        '@cron("0 9 * * *", name="digest", overlap=allow(3), catch_up="all", start_within="90s", spread="30s")'
    )


def test_a_beat_entry_brings_its_arguments_expiry_and_queue() -> None:
    crontab = SimpleNamespace(
        minute={30}, hour={7}, day_of_week={1, 2, 3, 4, 5}, day_of_month=set(range(1, 32)),
        month_of_year=set(range(1, 13)),
    )  # fmt: skip
    entry = {
        "task": "app.tasks.add", "schedule": crontab, "args": (16, 16),
        "options": {"expires": 600, "queue": "reports", "priority": 5},
    }  # fmt: skip
    converted = from_celery(entry, tz="Europe/Paris")
    assert converted.schedule == Cron("30 7 * * MON-FRI", tz="Europe/Paris")
    assert converted.options == {
        "payload": {"args": [16, 16], "kwargs": {}}, "start_within": "600s", "pool": "reports",
    }  # fmt: skip
    assert any("priority" in note for note in converted.notes)


def test_a_period_of_beat_becomes_every() -> None:
    for period in (30, 30.0, timedelta(seconds=30), SimpleNamespace(run_every=timedelta(seconds=30))):
        converted = from_celery(period)
        assert converted.schedule == Every("30s")
        assert converted.notes


def test_what_was_converted_can_be_declared_and_registered() -> None:
    scheduler = Scheduler("memory://")

    @from_apscheduler("cron", day_of_week="0-4", hour=9, timezone="Europe/Paris").declare(name="digest", retries=3)
    def digest() -> None: ...

    @from_celery(60).declare()
    def poll() -> None: ...

    @from_apscheduler("date", run_date=datetime(2027, 1, 1, tzinfo=UTC)).declare()
    def once() -> None: ...

    scheduler.discover(digest, poll, once)
    jobs = {declared.name: declared for declared in scheduler.registry}
    assert jobs["digest"].schedule == Cron("0 9 * * MON-FRI", tz="Europe/Paris")
    assert jobs["digest"].definition.retries == 3
    assert jobs["poll"].schedule == Every("1m")
    assert jobs["once"].schedule == At(datetime(2027, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"hour": 9}, "timezone is needed"),
        ({"year": 2027, "hour": 9, "timezone": "UTC"}, "year"),
        ({"week": "1-10", "hour": 9, "timezone": "UTC"}, "week"),
        ({"hour": 9, "end_date": "2020-01-01", "timezone": "UTC"}, "end_date=2020-01-01T00:00:00Z is over"),
        ({"hour": 9, "end_date": "soon", "timezone": "UTC"}, "end_date='soon' is not a date or an instant"),
        ({"day": "10-20", "day_of_week": "mon,wed,fri,sun", "timezone": "UTC"}, "must both match"),
        ({"day": "last", "day_of_week": "mon", "timezone": "UTC"}, "must both match"),
        ({"day_of_week": "mon-fri/2", "timezone": "UTC"}, "not an expression"),
        ({"day_of_week": "7", "timezone": "UTC"}, "outside 0 to 6"),
        ({"day_of_week": "funday", "timezone": "UTC"}, "not known"),
        ({"hour": "17-9", "timezone": "UTC"}, "runs backwards"),
        ({"hour": 9, "timezone": "Europe/Pariss"}, "Europe/Paris"),
        ({"timezone": "UTC"}, "no field"),
        ({"hour": 9, "timezone": "UTC", "century": 21}, "century"),
    ],
)
def test_what_apscheduler_can_say_and_cron_cannot_is_refused(told: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidError, match=why):
        from_apscheduler("cron", **told)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"day_of_month": "10-20", "day_of_week": "mon,tue"}, "must both match"),
        ({"day_of_week": 7}, "outside 0 to 6"),
        ({"minute": "5/3"}, "not an expression"),
        ({"minute": "*/0"}, "step of 0"),
        ({"hour": "noon"}, "not known"),
        ({"second": 5}, "no second"),
        ({}, "nothing was given"),
    ],
)
def test_what_celery_can_say_and_cron_cannot_is_refused(told: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidError, match=why):
        from_celery(**told)


def test_a_crontab_with_a_clock_of_its_own_has_the_zone_of_that() -> None:
    """Celery compares its fields with what `nowfun` returns."""
    app = Celery("shop", set_as_current=False)
    app.conf.timezone = "Asia/Tokyo"

    def nightly(now: Any) -> Converted:
        return from_celery(crontab(minute=30, hour=7, app=app, nowfun=now), tz="Asia/Tokyo")

    paris = nightly(lambda: datetime.now(ZoneInfo("Europe/Paris")))
    assert paris.schedule == Cron("30 7 * * *", tz="Europe/Paris")
    assert paris.notes == ("the crontab has a zone of its own, Europe/Paris, so tz=Asia/Tokyo was not used.",)
    assert nightly(lambda: datetime(2026, 1, 5)).schedule == Cron("30 7 * * *", tz="Asia/Tokyo")  # noqa: DTZ001
    with pytest.raises(InvalidError, match=r"nowfun of .* failed: ZeroDivisionError"):
        nightly(lambda: 1 / 0)


def test_a_schedule_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidError, match="solar"):
        from_celery(SimpleNamespace(event="sunset"))
    with pytest.raises(InvalidError, match="not a cron, interval or date trigger"):
        from_apscheduler(SimpleNamespace(triggers=[]))
    with pytest.raises(InvalidError, match="'cron', 'interval' or 'date'"):
        from_apscheduler("calendarinterval", days=1)
