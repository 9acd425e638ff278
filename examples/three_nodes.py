"""Three nodes on one store, as three processes; one is killed half-way, and every second has still run once.

    python examples/three_nodes.py                                  on a SQLite file
    python examples/three_nodes.py postgresql://app@localhost/app   on PostgreSQL, MySQL, MariaDB, Redis, Valkey
    python examples/three_nodes.py --seconds 20

Each line says which node ran which second. The last line is the verdict, from the store's own records.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
from collections import Counter
from datetime import datetime

from solocron import EmptyStore, Run, Scheduler

LEASE = "3s"


def make(url: str, node: str | None = None) -> Scheduler:
    """The same scheduler in every process."""
    scheduler = Scheduler(url, namespace="three-nodes", node=node, lease=LEASE)

    @scheduler.every("1s", retries=2, catch_up="all", overlap="queue-all")
    def heartbeat(run: Run) -> None:
        print(f"{run.slot:%H:%M:%S}  attempt {run.attempt}  on {run.node}", flush=True)

    return scheduler


def be_a_node(url: str, name: str) -> None:
    make(url, name).run_forever(grace="5s")


def watch_three(url: str, seconds: float) -> int:
    """Start them, kill one, stop the others, and look at the records."""
    scheduler = make(url)
    before = {view.slot for view in scheduler.runs("heartbeat", limit=10_000)} if _known(scheduler) else set()
    names = ["ada", "grace", "edsger"]
    nodes = [
        subprocess.Popen([sys.executable, __file__, "--node", name, url], env={**os.environ, "SOLOCRON_ENABLED": "1"})
        for name in names
    ]
    nothing = threading.Event()
    try:
        nothing.wait(seconds / 2)
        print("--------  ada is killed", flush=True)
        nodes[0].kill()
        nothing.wait(seconds / 2)
    finally:
        for node in nodes:
            node.terminate()
        for node in nodes:
            node.wait()
    done = [view for view in scheduler.runs("heartbeat", limit=10_000) if view.slot not in before]
    return verdict([view.slot for view in done if view.status == "succeeded"], Counter(str(v.node) for v in done))


def verdict(slots: list[datetime], shares: Counter[str]) -> int:
    twice = len(slots) - len(set(slots))
    span = round((max(slots) - min(slots)).total_seconds()) + 1 if slots else 0
    missing = span - len(set(slots))
    print(f"{len(slots)} runs: {twice} twice, {missing} missing, shared as {dict(sorted(shares.items()))}")
    return 0 if slots and not twice and not missing else 1


def _known(scheduler: Scheduler) -> bool:
    try:
        return any(job.name == "heartbeat" for job in scheduler.jobs())
    except EmptyStore:  # looking makes no store: the first node will
        return False


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", default=os.environ.get("SOLOCRON_STORE", "sqlite:///three-nodes.db"))
    parser.add_argument("--seconds", type=float, default=12, help="how long to watch (default: 12)")
    parser.add_argument("--node", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.node:
        be_a_node(options.url, options.node)
    else:
        sys.exit(watch_three(options.url, options.seconds))
