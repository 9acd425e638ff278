"""A node whose only body holds on until it is told to stop; it tells when a body begins."""

from __future__ import annotations

import json
import sys
import threading
import time

from solocron import Run, Scheduler


def main() -> int:
    orders = json.loads(sys.argv[1])
    scheduler = Scheduler(orders["store"], node=orders["node"], lease=orders["lease"])
    over = threading.Event()

    @scheduler.cron("* * * * * *", name="holding", retries=5, overlap="skip")
    def hold(run: Run) -> None:
        print(json.dumps({"began": time.time(), "attempt": run.attempt}), flush=True)
        while not run.cancelled and not over.wait(0.02):
            pass
        run.check()

    scheduler.on("node started", lambda event: print(json.dumps({"ready": True}), flush=True))
    scheduler.run_forever(grace="100ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
