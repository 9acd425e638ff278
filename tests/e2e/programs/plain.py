"""A program that starts its scheduler beside its own work, and drains at its exit; `exit` makes SIGTERM one."""

from __future__ import annotations

import atexit
import signal
import sys

from solocron import Scheduler

scheduler = Scheduler(lease="30s")


@scheduler.every("1d")
def job() -> None: ...


if __name__ == "__main__":
    atexit.register(scheduler.stop, "5s")
    if "exit" in sys.argv:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    scheduler.start()
    signal.pause()
