"""Stores of ordered keys: runs per second beside a bare script of the same commits, lateness, and the cost of idling.

A report of its own, so that it can be measured without the other stores, and they without it.
"""

from __future__ import annotations

import sys
import time
import traceback

from bench.figures import load_now, median
from bench.report import Report, Table
from bench.scenarios import Bench
from bench.scenarios.burst import MAX_RUNNING, pair
from bench.scenarios.idle import SCHEDULES, measure_idle
from bench.scenarios.lateness import measure_lateness
from bench.servers import SWAP, Servers
from solocron.errors import StoreError

__all__ = ["run"]

RATIO = 0.6
_REACH = {"etcd": 1_200, "nats": 1_200, "mongodb": 1_000, "zookeeper": 1_000, "dynamodb": 250, "azurite": 1_500}
"""Whole runs per second that three nodes are to reach."""
_TOLD_IN_SECONDS = ("etcd", "dynamodb", "azurite")
"""Stores that tell the time in whole seconds."""
_POLLED = ("dynamodb", "azurite")
"""Stores that do not notify."""
_DUE = {"dynamodb": 500}
"""Jobs that fall due at once; 2,000 on the others."""


def run(bench: Bench) -> Report:
    """Measure each store that is installed, or was asked for by name; one that fails costs no other its figures."""
    asked = [store for store in bench.stores if store in SWAP]
    stores = asked or [store for store in SWAP if Servers.is_installed(store)]
    report = Report("swap", "")
    rates = report.table(
        "Runs per second, whole life, beside a bare script of the same commits",
        *(
            "store",
            "due",
            "nodes",
            "runs/s",
            "median",
            "floor/s",
            "median",
            "ratio",
            "calls/run",
            "commits/run",
            "load",
        ),
    )
    late = report.table(
        "Lateness of one job, nothing else due", "store", "nodes", "samples", "p50 ms", "p99 ms", "worst ms"
    )
    idle = report.table(
        f"Idle, {SCHEDULES} schedules, three nodes at the default lease, per node",
        *("store", "calls/s", "commits/s", "CPU %", "RSS MB", "what"),
    )
    versions = []
    for store in stores:
        began = time.monotonic()
        versions.append(bench.servers.version(store))
        report.figures[store] = {}
        for measure, table in ((_rates, rates), (_lateness, late), (_idle, idle)):
            try:
                measure(bench, report, table, store)
            except (RuntimeError, OSError, StoreError) as error:
                traceback.print_exc()
                report.target(f"{store}, {table.title.partition(',')[0].lower()}", "measured", str(error)[:80], False)
        print(f"... {store} took {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    said = f"Stores of ordered keys: {', '.join(versions)}; max_running={MAX_RUNNING}; the best of {bench.repeat}."
    report.about = said
    return report


def _rates(bench: Bench, report: Report, table: Table, store: str) -> None:
    due = 200 if bench.quick else _DUE.get(store, 2_000)
    for nodes in (1, 3):
        found = pair(bench, store, due, nodes, floor=True)
        floor, load = found["floor"], load_now()
        ratio = found["runs_per_s"] / floor["runs_per_s"]
        report.figures[store].setdefault("burst", []).append({**found, "load": load})
        table.add(
            store, due, nodes, found["runs_per_s"], median(found["all"]), floor["runs_per_s"],
            median(floor["all"]), ratio, found["statements_per_run"], found["commits_per_run"], load,
        )  # fmt: skip
        told = f"{ratio:.2f} x ({found['runs_per_s']:,.0f}/s)"
        report.target(f"{store}, {due:,} due, {nodes} nodes", f">= {RATIO} x the floor", told, ratio >= RATIO)
        if nodes == 3 and not bench.quick:  # of 200 that are due, most of the time is the first look
            rate, goal = found["runs_per_s"], _REACH[store]
            report.target(f"{store}, {due:,} due, 3 nodes", f">= {goal:,}/s", f"{rate:,.0f}/s", rate >= goal)


def _lateness(bench: Bench, report: Report, table: Table, store: str) -> None:
    samples = 10 if bench.quick else 200
    for nodes in (1,) if bench.quick else (1, 3):
        found = measure_lateness(bench.servers.fresh(store), nodes, samples)
        report.figures[store].setdefault("lateness", []).append(found)
        table.add(store, nodes, samples, found["p50_ms"], found["p99_ms"], found["worst_ms"])
        p50, p99 = (25, 60) if store in _TOLD_IN_SECONDS else (15, 50)
        ok = found["p50_ms"] <= p50 and found["p99_ms"] <= p99
        told = f"{found['p50_ms']:.0f} / {found['p99_ms']:.0f} ms"
        report.target(f"lateness on {store}, {nodes} nodes", f"p50 <= {p50} ms, p99 <= {p99} ms", told, ok)


def _idle(bench: Bench, report: Report, table: Table, store: str) -> None:
    found = measure_idle(bench.servers.fresh(store), 11 if bench.quick else 60)
    report.figures[store]["idle"] = found
    # A commit is a call too: on these stores it is not the end of a transaction of several. A client that is told of
    # nothing looks for news once a second, which no statement counts.
    calls = found["sent_per_s"] or found["statements_per_s"] + found["commits_per_s"]
    what = ", ".join(f"{name} {count}" for name, count in sorted(found["by_name"].items()))
    table.add(store, calls, found["commits_per_s"], found["cpu_percent"], found["rss_mb"], what)
    limit = 1.5 if store in _POLLED else 0.5
    report.target(f"idle on {store}", f"<= {limit} calls/s", f"{calls:.2f}/s", calls <= limit)
