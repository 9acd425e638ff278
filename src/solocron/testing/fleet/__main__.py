"""One replica of a fleet: a plain program with a scheduler, which also writes every event to a file for the tests."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from pathlib import Path

from solocron.clock import SystemClock
from solocron.events import Event
from solocron.scheduler import Scheduler
from solocron.testing.fleet.leash import end_with_parent


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m solocron.testing.fleet", description=__doc__)
    parser.add_argument("target", nargs="+", help="modules with jobs")
    parser.add_argument("--node", required=True)
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--lease", default="15s")
    parser.add_argument("--beat")
    parser.add_argument("--max-running", type=int, default=32)
    parser.add_argument("--grace", default="10s")
    parser.add_argument("--events", type=Path, required=True, help="the file to note events in")
    options = parser.parse_args(argv)
    end_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    scheduler = Scheduler(  # the store is in SOLOCRON_STORE: a command line is the wrong place for a password
        namespace=options.namespace,
        node=options.node,
        lease=options.lease,
        beat=options.beat,
        max_running=options.max_running,
    )
    note_events(scheduler, options.events)
    scheduler.discover(*options.target)
    scheduler.run_forever(options.grace)
    return 0


def note_events(scheduler: Scheduler, path: Path) -> None:
    """Append every event to a file, one line by one write."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    clock = SystemClock()

    def note(event: Event) -> None:
        facts = {name: value for name, value in event.facts.items() if name != "exception"}
        line = {"event": event.name, "at": clock.boot(), "pid": os.getpid(), **facts}
        os.write(file, (json.dumps(line, default=str) + "\n").encode())

    scheduler.on("*", note)


if __name__ == "__main__":
    sys.exit(main())
