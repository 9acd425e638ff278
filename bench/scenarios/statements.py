"""Figures without noise: statements and commits per run, counted by the clients and by the server itself."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from bench.fleet import check_log, load_ahead, opened, start_nodes
from bench.processes import Children, wait_until
from bench.report import Report
from bench.scenarios import Bench
from bench.servers import counting_postgres, counting_redis

__all__ = ["run"]

_IDLE = frozenset(
    ("session_renewed", "held_jobs", "all_documents", "holders", "prune_runs", "prune_sessions", "clock", "signals")
)
"""Statements of a node whether anything is due or not: its beats, its looks at the others, its upkeep."""


def run(bench: Bench) -> Report:
    """Batches of 100, and single runs with one to five nodes."""
    report = Report("statements", "Counted from just before the instant until every outcome is in the store.")
    table = report.table(
        "Per run, all nodes together",
        *("store", "due", "nodes", "statements/run", "commits/run", "server: statements", "server: transactions"),
    )
    cases = [(100, 1), (1, 1), (1, 3)]
    if bench.thorough:
        cases = [(100, 1), (100, 3), *((1, nodes) for nodes in range(1, 6))]
    elif not bench.quick:
        cases.append((1, 5))
    for store in bench.stores:
        first: float | None = None
        for due, nodes in cases:
            figures = _measure(store, bench.servers.fresh(store), due, nodes)
            report.figures.setdefault(store, []).append(figures)
            per_run, commits = figures["statements"] / due, figures["commits"] / due
            server = figures["server"]
            table.add(
                store, due, nodes, per_run, commits,
                server.get("statements", server.get("calls", "-")), server.get("transactions", "-"),
            )  # fmt: skip
            if store == "postgres" and due == 100 and nodes == 1:
                reached = f"{per_run:.3f} and {commits:.3f}"
                goal = "<= 0.1 statements, <= 0.05 commits"
                report.target("per run, 100 due", goal, reached, per_run <= 0.1 and commits <= 0.05)
            if store == "postgres" and due == 1:
                first = per_run if first is None else first
                goal = "<= 8" if nodes == 1 else "<= 2 more per node"
                ok = per_run <= 8 if nodes == 1 else per_run <= first + 2 * (nodes - 1)
                report.target(f"statements of a single run, {nodes} nodes", goal, f"{per_run:.0f}", ok)
    return report


def _measure(store: str, url: str, due: int, nodes: int) -> dict[str, Any]:
    with Children() as children, opened(url) as client:
        started = start_nodes(children, url, nodes, max_running=500)
        instant = load_ahead(client, due)
        # Load a little ahead, then let the wake-ups that loading caused pass by.
        time.sleep(max(0.0, (instant - client.clock()) / 1_000_000 - 0.3))
        before = [Counter(node.count()["counted"]) for node in started]
        server: dict[str, int] = {}
        counting = {"postgres": counting_postgres, "redis": counting_redis}.get(store)
        if counting is None:
            wait_until(lambda: children.total("finished") >= due, 60, f"{due} runs")
        else:
            with counting(url) as server:
                wait_until(lambda: children.total("finished") >= due, 60, f"{due} runs")
                time.sleep(0.2)
        after = [Counter(node.count()["counted"]) for node in started]
        for node in started:
            node.end()
        check_log(client, due, instant)
    sent: Counter[str] = sum((b - a for a, b in zip(before, after, strict=True)), Counter())
    idle = sum(count for name, count in sent.items() if name in _IDLE)
    commits = sent.pop("commit", 0) - sent.get("session_renewed", 0)
    return {
        "due": due,
        "nodes": nodes,
        "statements": sent.total() - idle,
        "commits": commits,
        "by_name": dict(sent),
        "server": server,
    }
