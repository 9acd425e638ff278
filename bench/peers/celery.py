"""Celery on Redis, workers of threads; beat in one node only, since each further one would send everything again."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import redis
from celery import Celery
from celery.beat import ScheduleEntry, Scheduler, Service
from celery.schedules import schedule
from celery.worker import WorkController

from bench.peers import body

DAY = timedelta(days=1)


def make_app(asked: dict[str, Any]) -> Celery:
    app = Celery("bench", broker=asked["url"])
    app.conf.update(task_ignore_result=True, timezone="UTC", broker_connection_retry_on_startup=True)
    app.conf.update(worker_hijack_root_logger=False, redbeat_redis_url=asked["url"])
    app.task(body.noop, name="noop")
    return app


def first(asked: dict[str, Any]) -> bool:
    """Return whether this is the node that has the beat."""
    with redis.Redis.from_url(asked["url"]) as client:
        return bool(client.set("bench:beat", "1", nx=True))


def entries(app: Celery, asked: dict[str, Any]) -> type[Scheduler]:
    """A beat whose schedule is in the code, as in a program: each entry is due a day after its last run."""

    class Beat(Scheduler):
        def setup_schedule(self) -> None:
            last = asked["when"] - DAY
            self.merge_inplace({})
            for number in range(asked["due"]):
                name = f"job-{number}"
                self.schedule[name] = ScheduleEntry(name, "noop", last, schedule=schedule(DAY, app=app), app=app)

    return Beat


def serve(app: Celery, asked: dict[str, Any], beat: Any) -> None:
    """A worker, and a beat beside it where one is given."""
    worker = WorkController(app=app, pool="threads", concurrency=asked["concurrency"], loglevel="ERROR")
    threading.Thread(target=worker.start, daemon=True).start()
    if beat is not None:
        threading.Thread(target=Service(app, scheduler_cls=beat).start, daemon=True).start()
    ended = threading.Event()
    body.watch(ended.set)
    ended.wait()
    body.last_words()
    import os

    os._exit(0)  # how politely a peer shuts down is not measured


def main() -> None:
    asked = body.orders()
    if asked["role"] == "load":
        body.say(over=True)
        return
    app = make_app(asked)
    serve(app, asked, entries(app, asked) if first(asked) else None)


if __name__ == "__main__":
    main()
