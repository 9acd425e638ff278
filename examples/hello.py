"""The whole idea in ten lines. `--once` runs the job right now and ends; without it the schedule decides.

python examples/hello.py --once
"""

from __future__ import annotations

import sys

# --- the ten lines of the README
from solocron import Run, Scheduler, cron


@cron("0 9 * * MON-FRI", tz="Europe/Paris", timeout="10m", retries=3)
def send_digest(run: Run) -> None:
    for user in run.track(["ada", "grace", "edsger"]):  # progress, and a place to stop
        print("digest for", user, run.slot, run.key)  # the key is the same on every attempt


scheduler = Scheduler("sqlite:///jobs.db")  # a store that all replicas share
scheduler.discover(__name__)  # the jobs of this module
# ---

if __name__ == "__main__":
    if "--once" in sys.argv:
        with scheduler:  # starts; drains at the end
            run = scheduler.trigger("send_digest")
            print(run, scheduler.wait(run, "30s").status)
    else:
        scheduler.run_forever()  # start(), then stop() at SIGTERM or Ctrl-C
