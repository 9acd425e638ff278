"""A node that runs every kind of job until each has ended once; prints what its threads have imported meanwhile.

    python -m tests.e2e.programs.importing URL

The first line says that it has started, the second is the list of modules, each with the thread that imported it.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from solocron import Scheduler
from solocron.events import Event


def main(url: str) -> int:
    imported: list[tuple[str, str]] = []
    node = threading.Event()

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        thread = threading.current_thread()
        if event == "import" and node.is_set() and thread is not threading.main_thread():
            imported.append((thread.name, arguments[0]))

    sys.addaudithook(note)
    scheduler = Scheduler(url, lease="3s", enabled=True)
    waiting = set(scheduler.discover("tests.e2e.jobs.all_kinds"))
    ended = threading.Event()

    def tick_off(event: Event) -> None:
        waiting.discard(event.job)
        if not waiting:
            ended.set()

    scheduler.on("finished", tick_off)
    node.set()
    scheduler.start()
    sys.stdout.write("started\n")
    sys.stdout.flush()
    try:
        if not ended.wait(60):
            raise SystemExit(f"never ended: {sorted(waiting)}")
    finally:
        node.clear()
        scheduler.stop("5s")
    sys.stdout.write(json.dumps(imported) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
