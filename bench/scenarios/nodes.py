"""The sharing of a burst: the same work with one to ten nodes, on two cores or whatever the machine has."""

from __future__ import annotations

from bench.fleet import burst
from bench.report import Report
from bench.scenarios import Bench

__all__ = ["run"]

MAX_RUNNING = 500
_WITHIN = 180.0


def run(bench: Bench) -> Report:
    """More nodes than cores cannot be faster; they must not be much slower either."""
    due = 1_000 if bench.quick else 5_000
    report = Report("nodes", f"{due} no-op jobs due at once, max_running={MAX_RUNNING} per node.")
    table = report.table("By nodes", "store", "nodes", "runs/s", "p50 ms", "p99 ms", "statements/run", "CPU us/run")
    for store in [store for store in bench.stores if store in ("postgres", "redis")]:
        for nodes in (1, 3) if bench.quick else (1, 3, 5, 10):
            tries = [
                burst(bench.servers.fresh(store), due=due, nodes=nodes, max_running=MAX_RUNNING, within=_WITHIN)
                for _ in range(bench.repeat)
            ]
            facts = max(tries, key=lambda one: one.rate).facts()
            report.figures.setdefault(store, []).append(facts)
            table.add(
                store, nodes, facts["runs_per_s"], facts["lateness_p50_ms"], facts["lateness_p99_ms"],
                facts["statements_per_run"], facts["cpu_us_per_run"],
            )  # fmt: skip
    return report
