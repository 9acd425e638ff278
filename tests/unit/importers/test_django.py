"""Rows of django-celery-beat are converted with the zone that they carry, or refused with a reason.

The classes here are shaped like its models, field by field, and the instants were recorded from the real ones (see
record_peers). The real tables are read in tests/unit/cli/test_import.py.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from solocron import At, Cron, Every
from solocron.errors import InvalidError
from solocron.importers import from_celery

PEERS = json.loads((Path(__file__).parent / "peers.json").read_text())["django-celery-beat"]
PARIS = ZoneInfo("Europe/Paris")
FIELDS = {"minute": "*", "hour": "*", "day_of_week": "*", "day_of_month": "*", "month_of_year": "*"}


class Crontab:
    """Celery's own: it has a zone, but that is the application's."""

    def __init__(self, app_zone: str | None = None, **fields: str) -> None:
        self.__dict__.update(FIELDS, **fields)
        self.app_zone = app_zone

    @property
    def tz(self) -> tzinfo | None:
        return None if self.app_zone is None else ZoneInfo(self.app_zone)


class TzAwareCrontab:
    """That of django-celery-beat: the zone is its own."""

    def __init__(
        self, minute: str, hour: str, day_of_week: str, day_of_month: str, month_of_year: str, tz: tzinfo
    ) -> None:
        self.minute, self.hour, self.day_of_week = minute, hour, day_of_week
        self.day_of_month, self.month_of_year = day_of_month, month_of_year
        self.tz = tz


class CrontabSchedule:
    """A row; `schedule` is what beat goes by."""

    def __init__(self, *, timezone: tzinfo, **fields: str) -> None:
        self.__dict__.update(FIELDS, **fields)
        self.timezone = timezone

    @property
    def schedule(self) -> TzAwareCrontab:
        return TzAwareCrontab(**{name: getattr(self, name) for name in FIELDS}, tz=self.timezone)


def interval(seconds: float) -> SimpleNamespace:
    return SimpleNamespace(
        every=seconds, period="seconds", schedule=SimpleNamespace(run_every=timedelta(seconds=seconds))
    )


def clocked(when: datetime) -> SimpleNamespace:
    return SimpleNamespace(clocked_time=when, schedule=SimpleNamespace(clocked_time=when))


class SolarSchedule:
    event, latitude, longitude = "sunset", 48.0, 2.0

    @property
    def schedule(self) -> Any:
        raise RuntimeError("You need to install the ephem library to use solar schedules.")


def task(**fields: Any) -> SimpleNamespace:
    """A PeriodicTask with the defaults of its fields."""
    told: dict[str, Any] = {
        "name": "Send the digest", "task": "app.tasks.digest", "interval": None, "crontab": None, "solar": None,
        "clocked": None, "args": "[]", "kwargs": "{}", "queue": None, "exchange": None, "routing_key": None,
        "headers": "{}", "priority": None, "expires": None, "expire_seconds": None, "one_off": False,
        "start_time": None, "enabled": True,
    }  # fmt: skip
    return SimpleNamespace(**told | fields)


NIGHTLY = CrontabSchedule(minute="30", hour="7", timezone=PARIS)
LATER = datetime(2127, 1, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize("case", PEERS["cases"], ids=lambda case: case["tz"])
def test_a_row_fires_when_django_celery_beat_fired_whatever_the_applications_zone_is(case: dict[str, Any]) -> None:
    row = CrontabSchedule(**case["told"], timezone=ZoneInfo(case["tz"]))
    for given in (row, row.schedule, task(crontab=row)):
        for zone in (None, "Asia/Tokyo"):
            converted = from_celery(given, tz=zone)
            at: datetime | None = datetime.fromisoformat(PEERS["start"])
            for expected in case["fires"]:
                assert at is not None
                at = converted.schedule.after(at)
                assert at is not None
                assert at.isoformat() == expected


def test_a_zone_that_is_not_used_is_told() -> None:
    assert from_celery(NIGHTLY).notes == ()
    assert from_celery(NIGHTLY, tz="Europe/Paris").notes == ()
    (note,) = from_celery(NIGHTLY, tz="Asia/Tokyo").notes
    assert "Europe/Paris" in note
    assert "Asia/Tokyo" in note


def test_a_crontab_of_celerys_has_the_applications_zone_unless_one_is_given() -> None:
    assert from_celery(Crontab("Europe/Paris", minute="0", hour="9")).schedule == Cron("0 9 * * *", tz="Europe/Paris")
    assert from_celery(Crontab("Europe/Paris", minute="0", hour="9"), tz="UTC").schedule == Cron("0 9 * * *")
    assert from_celery(Crontab(minute="0", hour="9")).schedule == Cron("0 9 * * *")


def test_an_interval_and_a_clocked_time_become_every_and_at() -> None:
    assert from_celery(interval(300)).schedule == Every("5m")
    for given in (clocked(LATER), clocked(LATER).schedule, task(clocked=clocked(LATER), one_off=True)):
        assert from_celery(given).schedule == At(LATER)
    assert from_celery(task(interval=interval(30))).schedule == Every("30s")


def test_a_task_brings_its_arguments_expiry_queue_and_whether_it_is_enabled() -> None:
    converted = from_celery(
        task(
            crontab=NIGHTLY,
            args="[1]",
            kwargs='{"a": 2}',
            queue="reports",
            expire_seconds=60,
            enabled=False,
            priority=3,
            headers='{"tenant": "ada"}',
            start_time=datetime(2020, 1, 1, tzinfo=UTC),
        )
    )
    assert converted.schedule == Cron("30 7 * * *", tz="Europe/Paris")
    assert converted.options == {
        "payload": {"args": [1], "kwargs": {"a": 2}}, "start_within": "60s", "pool": "reports", "enabled": False,
    }  # fmt: skip
    assert any("headers, priority" in note for note in converted.notes)
    assert from_celery(task(crontab=NIGHTLY, args="", kwargs="", headers=None)).options == {}


def test_start_time_and_expires_become_the_first_and_the_last_instant() -> None:
    """Beat sends nothing from `expires` on, and `ends` is the last instant that may be a slot."""
    later = datetime(2040, 6, 1, tzinfo=UTC)
    converted = from_celery(task(crontab=NIGHTLY, start_time=later, expires=later + timedelta(days=1)))
    assert converted.options == {"starts": "2040-06-01T00:00:00Z", "ends": "2040-06-01T23:59:59.999999Z"}
    assert converted.notes == (
        "start_time becomes starts=2040-06-01T00:00:00Z.",
        "expires=2040-06-02T00:00:00Z becomes ends=, the last instant before it.",
    )
    declared = converted.declare(name="digest")(lambda: None)
    assert declared is not None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (task(solar=SolarSchedule()), "'sunset' is solar"),
        (SolarSchedule(), "'sunset' is solar"),
        (task(), "has no schedule"),
        (task(crontab=NIGHTLY, one_off=True), "one_off"),
        (task(crontab=NIGHTLY, expires=datetime(2020, 1, 1, tzinfo=UTC)), "expires=2020-01-01T00:00:00Z is over"),
        (task(crontab=NIGHTLY, args="[1"), "args is not JSON"),
    ],
)
def test_what_has_no_counterpart_is_refused_and_named(given: Any, why: str) -> None:
    with pytest.raises(InvalidError, match=rf"{why}.*Nothing was converted") as refused:
        from_celery(given)
    if hasattr(given, "task"):
        assert "Send the digest" in str(refused.value)
