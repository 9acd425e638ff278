"""Asks the real APScheduler 3, Celery and django-celery-beat when their schedules fire; writes it down for the tests.

Their answers are kept in `peers.json` beside this file, so that a new release of theirs cannot change what the tests
compare with. To record them again:  python tests/unit/importers/record_peers.py
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

HERE = Path(__file__).parent
START = datetime(2026, 11, 15, 0, 0, 30, tzinfo=UTC)
MANY = 12

APSCHEDULER: list[dict[str, Any]] = [
    {"hour": 9, "timezone": "UTC"},
    {"day_of_week": 0, "hour": 9, "timezone": "UTC"},
    {"day_of_week": "0-4", "hour": 9, "timezone": "Europe/Paris"},
    {"day_of_week": "mon-fri", "hour": "9-17", "minute": "*/15", "timezone": "Europe/Paris"},
    {"day_of_week": "sat,sun", "hour": 7, "minute": 30, "timezone": "America/New_York"},
    {"day_of_week": "*/2", "hour": 1, "timezone": "UTC"},
    {"day_of_week": "5,6", "timezone": "UTC"},
    {"day_of_week": "6", "hour": 0, "timezone": "UTC"},
    {"month": "*/3", "timezone": "UTC"},
    {"month": "jan-mar,oct", "day": "15", "hour": 12, "timezone": "UTC"},
    {"day": "last", "hour": 23, "minute": 55, "timezone": "Asia/Tokyo"},
    {"day": "1,15,last", "hour": 6, "timezone": "UTC"},
    {"day": "2nd fri", "hour": 6, "timezone": "UTC"},
    {"day": "last sun", "hour": 6, "timezone": "UTC"},
    {"day": "1st mon,3rd wed,20", "hour": 6, "timezone": "UTC"},
    {"day": "5th thu", "hour": 6, "timezone": "UTC"},
    {"day": "1-7", "day_of_week": "tue", "hour": 3, "timezone": "UTC"},
    {"day": "8-14,22-28", "day_of_week": "mon,thu", "hour": 3, "timezone": "UTC"},
    {"day": "*/2", "day_of_week": "mon", "hour": 3, "timezone": "UTC"},
    {"day": "10-20", "day_of_week": "sun", "hour": 3, "timezone": "UTC"},
    {"day": "3/7", "hour": 3, "timezone": "UTC"},
    {"second": "*/20", "timezone": "UTC"},
    {"minute": "5", "second": "30", "timezone": "UTC"},
    {"hour": "0,12", "timezone": "Pacific/Auckland"},
    {"hour": "8-18/2", "minute": "10-50/20", "timezone": "UTC"},
    {"minute": "*", "timezone": "UTC"},
    {"day": "13", "day_of_week": "*", "hour": "*/6", "timezone": "UTC"},
]

CELERY: list[dict[str, Any]] = [
    {"minute": 30, "hour": 7},
    {"minute": 0, "hour": 9, "day_of_week": 1},
    {"minute": 0, "hour": 9, "day_of_week": "mon-fri"},
    {"minute": 0, "hour": 9, "day_of_week": "sunday"},
    {"minute": 0, "hour": 0, "day_of_week": "fri-mon"},
    {"minute": "*/15"},
    {"minute": 0, "hour": "*/3"},
    {"minute": 0, "hour": "22-2"},
    {"minute": 0, "hour": "0,8-17/2"},
    {"minute": 0, "hour": 0, "day_of_month": "2-30/2"},
    {"minute": 0, "hour": 0, "day_of_month": "1-7,15-21", "day_of_week": 1},
    {"minute": 0, "hour": 0, "day_of_month": "*/2", "day_of_week": "mon,thu"},
    {"minute": 0, "hour": 0, "day_of_month": "10-20", "day_of_week": "0"},
    {"minute": 0, "hour": 0, "day_of_month": "11", "month_of_year": "5"},
    {"minute": 0, "hour": 0, "day_of_month": 1, "month_of_year": "*/3"},
    {"minute": 0, "hour": 0, "day_of_month": 1, "month_of_year": "jan,jul-sep"},
    {"minute": [0, 20, 50], "hour": [6, 18]},
    {"minute": 0, "hour": 3, "day_of_week": "*/2"},
    {"minute": "1,13,30-45,50-59/2", "hour": 5},
    {"minute": 0, "hour": 6, "day_of_month": 31},
]

IN_DJANGO: list[tuple[dict[str, str], str]] = [
    ({"minute": "30", "hour": "7"}, "Europe/Paris"),
    ({"minute": "0", "hour": "9", "day_of_week": "mon-fri"}, "America/New_York"),
    ({"minute": "*/20", "hour": "22-2", "day_of_month": "1,15"}, "Asia/Kolkata"),
    ({"minute": "0", "hour": "0", "day_of_week": "0"}, "UTC"),
]


def apscheduler_fires(told: dict[str, Any]) -> list[str]:
    """The next instants, by APScheduler."""
    from apscheduler.triggers.cron import CronTrigger

    trigger = CronTrigger(**told)
    found: list[str] = []
    previous, now = None, START
    for _ in range(MANY):
        previous = trigger.get_next_fire_time(previous, now)
        now = previous
        found.append(previous.astimezone(UTC).isoformat())
    return found


def celery_fires(fields: dict[str, Any], zone: str) -> list[str]:
    """The next instants, by Celery."""
    from celery import Celery
    from celery.schedules import crontab

    app = Celery(set_as_current=False)
    app.conf.timezone = zone
    rule = crontab(**fields, app=app, nowfun=lambda: START)
    last = START.astimezone(ZoneInfo(zone))
    found: list[str] = []
    for _ in range(MANY):
        start, delta, _ = rule.remaining_delta(last)
        last = start + delta
        found.append(last.astimezone(UTC).isoformat())
    return found


def in_django_fires(fields: dict[str, str], zone: str) -> list[str]:
    """The next instants, by a row of django-celery-beat in an application whose own zone is another one."""
    from celery import Celery
    from django_celery_beat.models import CrontabSchedule

    app = Celery()
    app.conf.timezone = "Asia/Tokyo"
    rule = CrontabSchedule(**fields, timezone=ZoneInfo(zone)).schedule
    rule.app, rule.nowfun = app, lambda: START
    last = START.astimezone(ZoneInfo(zone))
    found: list[str] = []
    for _ in range(MANY):
        start, delta, _ = rule.remaining_delta(last)
        last = start + delta
        found.append(last.astimezone(UTC).isoformat())
    return found


def main() -> None:
    import apscheduler
    import celery
    import django
    import django_celery_beat
    from django.conf import settings

    settings.configure(USE_TZ=True, INSTALLED_APPS=["django_celery_beat"])
    django.setup()

    recorded = {
        "apscheduler": {
            "version": apscheduler.version,
            "start": START.isoformat(),
            "cases": [{"told": told, "fires": apscheduler_fires(told)} for told in APSCHEDULER],
        },
        "celery": {
            "version": celery.__version__,
            "start": START.isoformat(),
            "cases": [
                {"told": fields, "tz": zone, "fires": celery_fires(fields, zone)}
                for fields in CELERY
                for zone in ("UTC", "Europe/Paris")
            ],
        },
        "django-celery-beat": {
            "version": django_celery_beat.__version__,
            "start": START.isoformat(),
            "cases": [
                {"told": fields, "tz": zone, "fires": in_django_fires(fields, zone)} for fields, zone in IN_DJANGO
            ],
        },
    }
    (HERE / "peers.json").write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
