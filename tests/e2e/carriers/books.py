"""The job that the workers of every queue carry out; each program beside this file names its own carrier."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from solocron import Carrier, Run, Scheduler

LEDGER = Path(os.environ["SHOP_LEDGER"])
IMPORTED_BY = os.getpid()
prepared: list[int] = []
"""The process, once for each call of `open_books` in it."""


def open_books() -> None:
    """Prepare the process, as `Scheduler.setup` lets it."""
    prepared.append(os.getpid())


def keep_books(carrier: Carrier) -> Scheduler:
    """Return a scheduler whose one job runs in the workers of a queue."""
    scheduler = Scheduler(os.environ["SHOP_STORE"], lease="3s", grace=os.environ.get("SHOP_GRACE", "30s"))
    scheduler.setup("books:open_books")
    scheduler.carrier("queue", carrier, pickup=os.environ.get("SHOP_PICKUP", "5m"))

    @scheduler.cron("0 3 1 1 *", name="books", run_in="queue", retries=1, timeout="1m")
    def books(run: Run) -> str:
        """Write down that it began; a run that is told to wait does so until it is stopped."""
        with LEDGER.open("a") as ledger:
            ledger.write(f"{run.id} {run.attempt} {run.fence} {prepared == [os.getpid()]} {IMPORTED_BY}\n")
        sys.stdout.write("reading the books\n")
        run.progress(1, 2)
        while run.payload == "wait" and run.attempt == 1:
            run.check()
            time.sleep(0.05)
        return "closed"

    return scheduler
