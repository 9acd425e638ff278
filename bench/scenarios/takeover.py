"""A node dies while it runs something: how long until another one runs it. By kill -9 and by SIGTERM."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.figures import percentile
from bench.fleet import opened
from bench.processes import Child, Children, wait_until
from bench.report import Report
from bench.scenarios import Bench

__all__ = ["run"]

LEASE = 15.0


def run(bench: Bench) -> Report:
    """The victim's body never ends by itself; the successor's body tells when it began."""
    report = Report("takeover", f"Lease {LEASE:g} s, beat {LEASE / 3:g} s, one job with retries=5, two nodes.")
    table = report.table("From the signal to the successor's body", "store", "how", "samples", "p50 s", "worst s")
    stores = [store for store in bench.stores if store in ("postgres", "redis", "sqlite")]
    samples = 1 if bench.quick else 20 if bench.thorough else 8
    for store in stores[:1] if bench.quick else stores:
        for how in ("SIGTERM", "SIGKILL"):
            urls = [bench.servers.fresh(store) for _ in range(samples)]
            with ThreadPoolExecutor(4) as side_by_side:  # nearly all of it is waiting
                found = list(side_by_side.map(lambda url, how=how: _measure(url, how), urls))
            report.figures.setdefault(store, {})[how] = found
            table.add(store, how, samples, percentile(found, 50), max(found))
            limit = 1.0 if how == "SIGTERM" else LEASE + 1
            ok = max(found) <= limit
            report.target(f"takeover on {store} after {how}", f"<= {limit:g} s", f"{max(found):.2f} s", ok)
    return report


def _measure(url: str, how: str) -> float:
    with Children() as children, opened(url):
        nodes = [children.add(_node(url, number)) for number in (1, 2)]
        for node in nodes:
            node.wait_for("ready", 60)
        wait_until(lambda: any("began" in node.said for node in nodes), 30, "the first body")
        victim = next(node for node in nodes if "began" in node.said)
        other = next(node for node in nodes if node is not victim)
        time.sleep(1.0)
        at = time.time()
        os.kill(victim.process.pid, signal.Signals[how])
        began: Any = other.wait_for("began", 4 * LEASE)
        return round(float(began) - at, 3)


def _node(url: str, number: int) -> Child:
    return Child.module("bench.holding_node", {"store": url, "node": f"n{number}", "lease": LEASE})
