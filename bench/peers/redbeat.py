"""Celery with RedBeat on Redis: the schedule is in the store, all nodes have a beat, and a lock lets one work."""

from __future__ import annotations

from celery.schedules import schedule
from redbeat import RedBeatScheduler, RedBeatSchedulerEntry

from bench.peers import body
from bench.peers.celery import DAY, make_app, serve


def main() -> None:
    asked = body.orders()
    app = make_app(asked)
    if asked["role"] == "load":
        for number in range(asked["due"]):
            entry = RedBeatSchedulerEntry(f"job-{number}", "noop", schedule(DAY, app=app), app=app)
            entry.last_run_at = asked["when"] - DAY
            entry.save()
        body.say(over=True)
        return
    serve(app, asked, RedBeatScheduler)


if __name__ == "__main__":
    main()
