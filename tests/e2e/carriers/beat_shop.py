"""A Celery application with a schedule of its own, for beats on several machines."""

from __future__ import annotations

import os

from celery import Celery
from celery.schedules import crontab

app = Celery("shop", broker=os.environ["SHOP_BROKER"])
app.conf.solocron_store = os.environ["SHOP_STORE"]
app.conf.solocron_lease = "3s"
app.conf.task_default_queue = os.environ["SHOP_QUEUE"]
app.conf.beat_schedule = {
    "say it every second": {
        "task": "shop.say",
        "schedule": 1.0,
        "args": (1,),
        "kwargs": {"word": "hello"},
        "options": {"headers": {"colour": "blue"}},
    },
    "nightly": {
        "task": "shop.close",
        "schedule": crontab(minute=0, hour=3),
        "options": {"solocron": {"overlap": "queue"}},
    },
}
