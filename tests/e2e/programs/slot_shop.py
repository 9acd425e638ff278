"""A program whose jobs Pods run: `bill` waits in its first attempt if it is told to."""

from __future__ import annotations

import os
import time
from pathlib import Path

from solocron import Backoff, Run, Scheduler

LEDGER = Path(os.environ["SHOP_LEDGER"])
scheduler = Scheduler(os.environ["SHOP_STORE"], lease="3s")


@scheduler.cron("0 3 1 1 *", retries=1, backoff=Backoff("1s"))
def bill(run: Run) -> None:
    """Write down that it began; then fail, or wait until it is killed, in the first attempt, or fail in each."""
    with LEDGER.open("a") as ledger:
        ledger.write(f"{run.id} {run.attempt}\n")
    if run.payload == "fail for good" or (run.attempt == 1 and run.payload == "fail"):
        raise RuntimeError("the bank hung up")
    while run.attempt == 1 and run.payload == "wait":
        run.check()
        time.sleep(0.05)


@scheduler.cron("0 3 1 1 *")
def other(run: Run) -> None:
    with LEDGER.open("a") as ledger:
        ledger.write(f"{run.id} {run.attempt}\n")
