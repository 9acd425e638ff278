"""The Celery app, and the carrier that takes runs to its workers."""

from __future__ import annotations

import os

from celery import Celery

from solocron import Scheduler
from solocron.carriers.celery import CeleryCarrier

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
app = Celery("shop", broker=os.environ.get("BROKER_URL", "redis://localhost:6379/0"))


def carriers(scheduler: Scheduler) -> None:
    """Name the carrier: jobs with `run_in="celery"` run in workers of the queue `cron`."""
    scheduler.carrier("celery", CeleryCarrier(app, queue="cron"))
