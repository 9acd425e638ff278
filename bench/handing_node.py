"""One process that hands runs over to Celery, and sends as many messages by `apply_async` itself, in turn.

Its orders come as JSON in the first argument. It ends by itself, with the seconds of each.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from celery import Celery  # type: ignore[import-untyped]

from bench.fleet import load_ahead, opened
from solocron import Scheduler
from solocron.carriers.celery import CeleryCarrier
from solocron.clock import SECOND
from solocron.process import settle_memory
from solocron.stores.contract import Store

OPTIONS = {"run_in": "celery", "timeout": "10m"}


def main() -> int:
    orders = json.loads(sys.argv[1])
    app = Celery("bench", broker=orders["broker"])
    plain = app.task(_plain, name="bench.plain", ignore_result=True)
    scheduler = Scheduler(orders["store"], node="n1", max_running=orders["max_running"])
    scheduler.carrier("celery", CeleryCarrier(app, queue="cron"))
    scheduler.register(lambda: None, name="noop")
    settle_memory()
    with opened(orders["store"]) as loader:  # a node is not woken by what its own store object writes
        rounds = [_round(scheduler, loader, plain, n, orders["due"]) for n in range(orders["rounds"] + 1)]
    statements = dict(scheduler.open().store.statements)
    scheduler.stop("10s")
    _say(rounds=rounds[1:], statements=statements, over=True)  # the first one connects and imports
    return 0


def _plain(message: dict[str, Any]) -> None:
    """Do nothing: no worker gets it."""


def _round(scheduler: Scheduler, loader: Store, plain: Any, number: int, due: int) -> dict[str, float]:
    """Send and hand over `due` messages; return the seconds of each."""
    message = {"namespace": "default", "job": "job-0000001", "run": "job-0000001@0123456789abcdef", "attempt": 1}
    began = time.perf_counter()
    for _ in range(due):
        plain.apply_async((message,), queue="plain")
    sent = time.perf_counter() - began

    counts, over = scheduler.events.counts, threading.Event()
    before = counts["handed over"]
    last = [0.0]

    def look(event: object) -> None:
        if counts["handed over"] - before >= due:
            last[0] = time.time()
            over.set()

    scheduler.events.on("handed over", look)
    if number == 0:
        scheduler.start()
    instant = load_ahead(loader, due, first=number * due, **OPTIONS)
    if not over.wait(180):
        raise RuntimeError(f"{due} runs fell due, and {counts['handed over'] - before} were handed over")
    scheduler.events.off("handed over", look)
    return {"sent_s": sent, "handed_s": last[0] - instant / SECOND}


def _say(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
