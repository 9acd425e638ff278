"""One node in a process of its own: says when it is ready and how many runs it has finished; at the end, what it cost.

Its orders come as JSON in the first argument; the line "count" on its standard input asks what it has sent, any other
ends it.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from typing import Any

from solocron import Scheduler
from solocron.events import Event
from solocron.process import settle_memory
from solocron.scheduler.hooks import core_of


def main() -> int:
    orders = json.loads(sys.argv[1])
    stamps: list[float] = []
    last = [0.0]

    def noop() -> None:
        stamps.append(time.time())

    scheduler = Scheduler(
        orders["store"],
        node=orders["node"],
        max_running=orders["max_running"],
        lease=orders["lease"],
        namespace=orders["namespace"],
        keep=orders.get("keep", "30d"),
    )
    before = _rss_mb()
    functions = [_function(stamps) for _ in range(orders["declared"])]
    functions_mb = _rss_mb() - before
    began = time.perf_counter()
    scheduler.register(noop, name="noop")
    spread = {"spread": orders["spread"]} if "spread" in orders else {}
    for number, function in enumerate(functions):
        expression = orders["expressions"][number % len(orders["expressions"])]
        scheduler.cron(expression, name=f"job-{number:07}", **spread)(function)
    declared_s = time.perf_counter() - began

    over, news = threading.Event(), threading.Event()

    def finished(event: Event) -> None:
        last[0] = time.time()
        if not news.is_set():
            news.set()

    scheduler.on("finished", finished)

    def hear() -> None:
        for line in sys.stdin:
            if line.strip() != "count":
                break
            store = scheduler.open().store
            _say(counted=dict(store.statements), sent=_sent(store), cpu=time.process_time(), at=time.perf_counter())
        over.set()
        news.set()

    threading.Thread(target=hear, daemon=True).start()
    settle_memory()  # as `run_forever` and the command `solocron run` do
    began = time.perf_counter()
    scheduler.start()
    started_s = time.perf_counter() - began
    node, pause = core_of(scheduler).node, threading.Event()
    while node is not None and not node.gate.may_claim():  # beside others it waits until each has renewed
        pause.wait(0.05)
    _say(ready=time.time(), declared_s=declared_s, started_s=started_s, rss_mb=_rss_mb(), functions_mb=functions_mb)
    cpu = time.process_time()
    since = time.perf_counter()
    told = 0
    while news.wait() and not over.wait(0.05):  # an idle node does nothing here: what it costs is its own
        news.clear()
        count = scheduler.events.counts["finished"]
        if count != told:
            told = count
            _say(finished=count)
    cpu, since = time.process_time() - cpu, time.perf_counter() - since
    statements = dict(scheduler.open().store.statements)
    rss = _rss_mb()
    clean = scheduler.stop("10s")
    _say(
        node=orders["node"], finished=scheduler.events.counts["finished"], last=last[0], cpu_s=cpu, seconds=since,
        rss_mb=rss, peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, statements=statements,
        events=dict(scheduler.events.counts), stamps=stamps, clean=clean, over=True,
    )  # fmt: skip
    return 0


def _function(stamps: list[float]) -> Any:
    """A function of its own for each declared job, as in a program."""

    def body() -> None:
        stamps.append(time.time())

    return body


def _sent(store: Any) -> int | None:
    """Calls of a client that asks again and again whether there is news; None where the server tells it."""
    keys = getattr(store, "_keys", None)
    link = getattr(keys, "_link", None) or getattr(getattr(keys, "objects", None), "link", None)
    return getattr(link, "sent", None)


def _rss_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def _say(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
