"""A plain worker: thread jobs and coroutine jobs side by side, one of them failing now and then.

    python examples/worker.py                 until SIGTERM or Ctrl-C
    python examples/worker.py --seconds 5     for a while

Start it several times: they share the work, and each line is printed by one of them.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import threading

from solocron import AsyncRun, Backoff, Run, Scheduler, allow
from solocron.events import Event

scheduler = Scheduler(os.environ.get("SOLOCRON_STORE", "sqlite:///jobs.db"), lease="6s")


@scheduler.every("1s", retries=2, backoff=Backoff("200ms"))
def charge(run: Run) -> None:
    """A thread job. The key is the same on every attempt: pass it to the service that must not charge twice."""
    if run.attempt == 1 and run.slot.second % 3 == 0:
        raise ConnectionError("the bank did not answer")
    print(f"charge      {run.slot:%H:%M:%S}  attempt {run.attempt}  {run.key}", flush=True)


@scheduler.cron("*/2 * * * * *", overlap=allow(3), timeout="5s")
async def fetch_prices(run: AsyncRun) -> dict[str, int]:
    """A coroutine job; what it returns is kept with the run."""
    async for part in run.track(range(3)):
        await asyncio.sleep(0.1)
        print(f"prices      {run.slot:%H:%M:%S}  part {part}", flush=True)
    return {"parts": 3}


def tell(event: Event) -> None:
    """Called for every outcome that is in the store: a place for metrics or alarms."""
    if event.outcome != "succeeded":
        print(f"{event.outcome:<11} {event.run}", flush=True)


scheduler.on("finished", tell)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, help="stop after so many seconds, as SIGTERM would")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    if options.seconds is not None:
        threading.Timer(options.seconds, os.kill, (os.getpid(), signal.SIGTERM)).start()
    scheduler.run_forever(grace="10s")
