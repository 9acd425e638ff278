"""APScheduler 3 with its SQLAlchemy job store on PostgreSQL; one node, since each further one runs everything again."""

from __future__ import annotations

import threading

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger

from bench.peers import body


def main() -> None:
    asked = body.orders()
    url = asked["url"].replace("postgresql://", "postgresql+psycopg://")
    scheduler = BackgroundScheduler(
        jobstores={"default": SQLAlchemyJobStore(url=url)},
        executors={"default": ThreadPoolExecutor(asked["concurrency"])},
        job_defaults={"misfire_grace_time": None, "coalesce": False},
        timezone="UTC",
    )
    scheduler.start(paused=asked["role"] == "load")
    if asked["role"] == "load":
        when = asked["when"]
        for number in range(asked["due"]):
            trigger = CronTrigger(hour=when.hour, minute=when.minute, second=when.second, timezone="UTC")
            scheduler.add_job(body.noop, trigger, id=f"job-{number}")
        body.say(over=True)
        return
    ended = threading.Event()
    body.watch(ended.set)
    ended.wait()
    body.last_words()


if __name__ == "__main__":
    main()
