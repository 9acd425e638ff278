"""A Django program with the tables of django-celery-beat and a beat; prints what became of its rows as JSON."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import django
from celery import Celery
from celery.beat import Service
from django.conf import settings

from solocron.testing.fleet import wait_until

folder = sys.argv[1]
settings.configure(
    INSTALLED_APPS=["django_celery_beat"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{folder}/django.db"}},
    USE_TZ=True,
)
django.setup()

from django.core.management import call_command  # noqa: E402 - Django has to be set up before
from django.utils import timezone  # noqa: E402
from django_celery_beat.models import (  # noqa: E402
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)

from solocron.carriers.beat import BeatScheduler  # noqa: E402

call_command("migrate", verbosity=0)
second = IntervalSchedule.objects.create(every=1, period="seconds")
solar = SolarSchedule.objects.create(event="sunset", latitude=0, longitude=0)
soon = ClockedSchedule.objects.create(clocked_time=timezone.now() + timedelta(seconds=5))
PeriodicTask.objects.create(name="say it", task="shop.say", interval=second, kwargs='{"word": "hi"}', queue="cron")
PeriodicTask.objects.create(name="once", task="shop.once", clocked=soon, one_off=True)
past = ClockedSchedule.objects.create(clocked_time=timezone.now() - timedelta(hours=1))
PeriodicTask.objects.create(name="late", task="shop.late", clocked=past, one_off=True)
PeriodicTask.objects.create(name="quick", task="shop.quick", interval=second, one_off=True)
PeriodicTask.objects.create(name="off", task="shop.off", interval=second, enabled=False)
nightly = CrontabSchedule.objects.create(minute="30", hour="7", timezone=ZoneInfo("Europe/Paris"))
PeriodicTask.objects.create(
    name="next-century", task="shop.next", crontab=nightly, start_time=datetime(2127, 1, 1, tzinfo=UTC),
    expires=datetime(2128, 1, 1, tzinfo=UTC),
)  # fmt: skip
PeriodicTask.objects.create(name="dusk", task="shop.dusk", solar=solar)
PeriodicTask.objects.create(name="nightly", task="shop.other", interval=second)

app = Celery("shop", broker="memory://")
app.conf.solocron_store = f"sqlite:///{folder}/beat.db"
app.conf.beat_schedule = {"nightly": {"task": "shop.nightly", "schedule": 86_400.0}}
warned: list[str] = []


class Kept(logging.Handler):
    """Keeps what is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        warned.append(record.getMessage())


logging.getLogger("solocron").addHandler(Kept())
service = Service(app, scheduler_cls=BeatScheduler)  # what `celery beat` runs
beat = service.scheduler
beating = threading.Thread(target=service.start, daemon=True)
beating.start()


def row(name: str) -> Any:
    return PeriodicTask.objects.get(name=name)


out: dict[str, Any] = {"jobs": sorted(job.name for job in beat.solocron.jobs())}
bounded = beat.solocron.get_job("task:next-century")
out["bounded"] = [bounded.starts, bounded.ends, bounded.zone]
wait_until(lambda: row("say it").total_run_count >= 2, within=60, what="the task is sent")
out["last_run_at"] = row("say it").last_run_at is not None
wait_until(lambda: not row("late").enabled, within=60, what="the one whose time had passed is sent")
wait_until(lambda: not row("once").enabled, within=60, what="the one is sent")
wait_until(lambda: not row("quick").enabled, within=60, what="the one that would repeat is sent")


def names() -> list[str]:
    return sorted(job.name for job in beat.solocron.jobs())


PeriodicTask.objects.filter(name="say it").first().delete()
PeriodicTask.objects.create(name="new", task="shop.new", interval=second)
changed = time.monotonic()
wait_until(lambda: "task:new" in names(), within=60, what="the change is seen")
out["seen within"] = time.monotonic() - changed
out["again"] = names()
wait_until(lambda: row("new").total_run_count >= 1, within=60, what="the new one is sent")
out["once"] = [row(name).total_run_count for name in ("once", "late", "quick")]
out["looks again in"] = beat.tick()
out["warned"] = sorted({line for line in warned if "periodic task" in line})
service.stop(wait=True)
beating.join()
sys.stdout.write(json.dumps(out))
