"""A program as users write it: the same module in nodes and in Celery workers."""

from __future__ import annotations

import os
import time
from pathlib import Path

from celery import Celery

from solocron import Run, Scheduler
from solocron.carriers.celery import CeleryCarrier

LEDGER = Path(os.environ["SHOP_LEDGER"])
app = Celery("shop", broker=os.environ["SHOP_BROKER"])
app.conf.broker_connection_retry_on_startup = True
scheduler = Scheduler(os.environ["SHOP_STORE"], lease="3s")
scheduler.setup("shop:open_books")
prepared: list[int] = []


def open_books() -> None:
    """Prepare the process, as `Scheduler.setup` lets it."""
    prepared.append(os.getpid())


scheduler.carrier("celery", CeleryCarrier(app, queue="cron"), pickup=os.environ.get("SHOP_PICKUP", "5m"))


@scheduler.cron("0 3 1 1 *", run_in="celery", retries=1, timeout="1m", hand_over={"priority": 5})
def books(run: Run) -> str:
    """Write down that it began; a run that is told to wait does so until it is stopped."""
    with LEDGER.open("a") as ledger:
        ledger.write(f"{run.id} {run.attempt} {run.fence} {os.getpid()} {os.getppid()} {prepared == [os.getpid()]}\n")
    while run.payload == "wait" and run.attempt == 1:
        run.check()
        time.sleep(0.05)
    return "closed"
