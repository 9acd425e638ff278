"""Jobs that fall due at once: whole lives (claim, body, finish, log) per second, beside the floor in the same run."""

from __future__ import annotations

import os
from typing import Any

from bench.figures import median
from bench.fleet import Burst, burst
from bench.floor.measure import FLOORS, measure_floor
from bench.report import Report
from bench.scenarios import Bench

__all__ = ["MAX_RUNNING", "pair", "run"]

MAX_RUNNING = 500
_WITHIN = 180.0


def run(bench: Bench) -> Report:
    """The quietest of the repetitions counts, of Solocron and of the floor alike; the median is told too."""
    report = Report(
        "burst",
        f"N no-op jobs fall due in one second; max_running={MAX_RUNNING} per node; the best of {bench.repeat}.",
    )
    table = report.table(
        "Runs per second, whole life",
        *("store", "due", "nodes", "runs/s", "median", "floor/s", "median", "ratio"),
        *("p50 ms", "p99 ms", "statements/run", "commits/run"),
    )
    share = report.table(
        "Processor time per run, in microseconds (that of the rest by the kernel's ticks, give or take ten)",
        *(
            "store",
            "due",
            "nodes",
            "a node",
            "the rest",
            "cores allow/s",
            "floor's script",
            "the rest",
            "cores allow/s",
        ),
    )
    for store in bench.stores:
        for due in _sizes(bench, store):
            for nodes in (1, 3) if due >= 20_000 or bench.thorough else (3,):
                figures = pair(bench, store, due, nodes)
                report.figures.setdefault(store, []).append(figures)
                floor = figures["floor"]["runs_per_s"] if figures["floor"] else None
                table.add(
                    store,
                    due,
                    nodes,
                    figures["runs_per_s"],
                    median(figures["all"]),
                    "-" if floor is None else floor,
                    "-" if floor is None else median(figures["floor"]["all"]),
                    "-" if floor is None else figures["runs_per_s"] / floor,
                    figures["lateness_p50_ms"],
                    figures["lateness_p99_ms"],
                    figures["statements_per_run"],
                    figures["commits_per_run"],
                )
                if due >= 10_000:
                    share.add(store, due, nodes, *_costs(figures), *(_costs(figures["floor"]) if floor else "---"))
    _judge(report)
    return report


def _costs(figures: dict[str, Any]) -> tuple[float, float, float]:
    """Return the cost of a run, and how many the cores could carry if they never waited."""
    mine, rest = figures["cpu_us_per_run"], figures["rest_us_per_run"]
    return mine, rest, round((os.cpu_count() or 1) * 1e6 / (mine + rest))


def _sizes(bench: Bench, store: str) -> tuple[int, ...]:
    """Return how many fall due at once; stores with a target show the growth, the others their end."""
    if bench.quick:
        return (100, 1_000)
    return (1, 10, 100, 1_000, 10_000, 20_000) if store in ("postgres", "redis") or bench.thorough else (20_000,)


def pair(bench: Bench, store: str, due: int, nodes: int, *, floor: bool | None = None) -> dict[str, Any]:
    """Solocron and the floor by turns. `floor`: whether to measure that; without, from a thousand due on."""
    best: Burst | None = None
    bare: dict[str, Any] | None = None
    rates, floors = [], []
    for _ in range(bench.repeat):
        if store in FLOORS and (floor or (floor is None and (due >= 1_000 or bench.thorough))):
            url = bench.servers.fresh(store)
            found = measure_floor(store, url, due=due, processes=nodes, batch=MAX_RUNNING, within=_WITHIN)
            floors.append(found["runs_per_s"])
            if bare is None or found["runs_per_s"] > bare["runs_per_s"]:
                bare = found
        one = burst(bench.servers.fresh(store), due=due, nodes=nodes, max_running=MAX_RUNNING, within=_WITHIN)
        rates.append(round(one.rate, 1))
        if best is None or one.rate > best.rate:
            best = one
    assert best is not None
    return {**best.facts(), "all": rates, "floor": bare and {**bare, "all": floors}}


def _judge(report: Report) -> None:
    for one in report.figures.get("postgres", ()):
        if one["due"] == 20_000 and one["nodes"] == 3:
            ratio = one["runs_per_s"] / one["floor"]["runs_per_s"]
            report.target(
                "PostgreSQL, 20,000 due, 3 nodes",
                ">= 0.6 x the floor",
                f"{ratio:.2f} x ({one['runs_per_s']:,.0f}/s)",
                ratio >= 0.6,
            )
        if one["due"] == 1_000 and one["nodes"] == 3:
            p50, p99 = one["lateness_p50_ms"], one["lateness_p99_ms"]
            reached = f"{p50:.0f} / {p99:.0f} ms"
            goal = "p50 <= 100 ms, p99 <= 250 ms"
            report.target("lateness of 1,000 due, 3 nodes, PostgreSQL", goal, reached, p50 <= 100 and p99 <= 250)
    for one in report.figures.get("redis", ()):
        if one["due"] == 20_000 and one["nodes"] == 3:
            rate = one["runs_per_s"]
            report.target("Redis, 20,000 due, 3 nodes", ">= 10,000/s", f"{rate:,.0f}/s", rate >= 10_000)
