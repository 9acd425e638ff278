"""A program that starts its scheduler and forks afterwards, as a web server with preloaded workers does.

Prints one JSON line: what the child saw of its parent's node, and under which sessions both worked.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import warnings

from solocron import Scheduler
from solocron.testing.fleet import wait_until

warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is just what this is about

PATIENCE = 30


def main(url: str) -> int:
    scheduler = Scheduler(url, lease="3s")
    scheduler.discover("tests.e2e.jobs.secondly")
    scheduler.start()
    before = _sessions(scheduler)
    wait_until(lambda: _is_quiet(scheduler), within=20, what="a moment in which nothing is written")
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)  # a child that hangs must not outlive the test
        try:
            facts = _in_the_child(scheduler)
            os.write(tell, json.dumps(facts).encode())
        finally:
            os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        told_by_child = pipe.read()
    os.waitpid(child, 0)
    if not told_by_child:
        raise SystemExit("the child could not say anything: its node did not come up")
    facts = json.loads(told_by_child)
    facts |= {"pid": os.getpid(), "before": before, "after": _sessions(scheduler)}
    facts["clean"] = scheduler.stop()
    sys.stdout.write(json.dumps(facts) + "\n")
    return 0


def _in_the_child(scheduler: Scheduler) -> dict[str, object]:
    """Without a start of its own the child does nothing; with one it is a node of its own."""
    threads = [thread.name for thread in threading.enumerate() if thread is not threading.current_thread()]
    renewals = scheduler.events.counts["session renewed"]
    scheduler.start()
    wait_until(lambda: scheduler.events.counts["session renewed"] > renewals, within=10, what="a renewal in the child")
    sessions = _sessions(scheduler)
    return {"child": os.getpid(), "threads": threads, "both": sessions, "child_clean": scheduler.stop()}


def _is_quiet(scheduler: Scheduler) -> bool:
    """Whether no statement was sent for a moment; a fork in the middle of a write is another story."""
    store = scheduler.open().store
    sent = store.statements.total()
    threading.Event().wait(0.15)
    return store.statements.total() == sent


def _sessions(scheduler: Scheduler) -> dict[str, list[object]]:
    """The living sessions: which process and node each belongs to."""
    return {view.session: [view.pid, view.node] for view in scheduler.nodes() if view.state != "dead"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
