"""No process of our own: a platform's timer (Cloud Scheduler, a CronJob, cron itself) calls this every minute.

    python examples/external_trigger.py

One pass takes what is due, runs it and ends. Two timers that fire at once are as safe as two replicas, and passes may
run beside nodes. `solocron tick examples/external_trigger.py` does the same without a line of code.
"""

from __future__ import annotations

import os

from solocron import Run, Scheduler, catch_up_all

scheduler = Scheduler(os.environ.get("SOLOCRON_STORE", "sqlite:///jobs.db"))


@scheduler.every("1s", name="invoices", retries=1, catch_up=catch_up_all(limit=10), overlap="queue-all")
def invoices(run: Run) -> None:
    print(f"invoices of {run.slot:%H:%M:%S}", flush=True)


def handler(event: object = None, context: object = None) -> dict[str, int]:
    """The entry point that a function platform calls."""
    return {"runs": len(scheduler.tick())}


if __name__ == "__main__":
    print(handler())
