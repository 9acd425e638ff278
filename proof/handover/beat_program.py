"""The program of beats and workers: three entries, and a task that writes down each message that arrives.

Plain Celery. Only `BEAT_STORE` names Solocron, and only the beats that are started with `-S solocron` look at it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from celery import Celery, signals  # type: ignore[import-untyped]
from celery.schedules import crontab  # type: ignore[import-untyped]

LEDGER = Path(os.environ["BEAT_LEDGER"])
PERIODS = {"secondly": 1.0, "every-third": 3.0, "minutely": 60.0}
"""Entries of the schedule, and the seconds between two of their slots."""

app = Celery("beats", broker=os.environ["BEAT_BROKER"])
app.conf.broker_connection_retry_on_startup = True
app.conf.broker_connection_max_retries = None
app.conf.task_ignore_result = True
app.conf.worker_hijack_root_logger = False
app.conf.solocron_store = os.environ["BEAT_STORE"]
app.conf.solocron_lease = "3s"
app.conf.redbeat_redis_url = os.environ["BEAT_REDIS"] or None
if "BEAT_LOOP" in os.environ:  # RedBeat's lock is five times as long
    app.conf.beat_max_loop_interval = float(os.environ["BEAT_LOOP"])
app.conf.beat_schedule = {
    name: {
        "task": "shop.note",
        "schedule": crontab() if period == 60 else period,
        "args": (name,),
        "options": {"solocron": {"catch_up": "all", "overlap": "queue-all"}}
        if os.environ["BEAT_KIND"] == "own"
        else {},
    }
    for name, period in PERIODS.items()
}


@signals.before_task_publish.connect  # type: ignore[untyped-decorator]
def stamp(headers: dict[str, Any] | None = None, **_: Any) -> None:
    """Write into the message when it was sent."""
    if headers is not None:
        headers["sent-at"] = f"{time.time():.3f}"


@app.task(name="shop.note", bind=True)  # type: ignore[untyped-decorator]
def note(self: Any, entry: str) -> None:
    """Write down what arrived."""
    request = vars(self.request)
    found = {**(request.get("headers") or {}), **request}
    words = [found.get(name) or "-" for name in ("id", "solocron-slot", "origin", "solocron-fence", "sent-at")]
    with LEDGER.open("a") as ledger:
        ledger.write(" ".join([entry, *map(str, words)]) + "\n")
