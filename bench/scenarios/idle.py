"""A node that has nothing to do: statements per second and processor time, with a thousand schedules."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.fleet import opened, start_nodes
from bench.load import load_jobs
from bench.processes import Children
from bench.report import Report
from bench.scenarios import Bench

__all__ = ["SCHEDULES", "measure_idle", "run"]

SCHEDULES = 1_000
_LIMITS = {"postgres": 0.5, "redis": 0.5, "mariadb": 1.5}


def run(bench: Bench) -> Report:
    """Three nodes at the default lease; everything that they send in some beats, upkeep included."""
    report = Report("idle", f"{SCHEDULES} stored schedules, none due; three nodes at the default lease of 15 s.")
    table = report.table("Per node", "store", "statements/s", "commits/s", "CPU %", "RSS MB", "what")
    seconds = 11 if bench.quick else 60
    urls = [bench.servers.fresh(store) for store in bench.stores]
    with ThreadPoolExecutor(len(urls)) as side_by_side:  # idle nodes do not disturb each other
        found = list(side_by_side.map(lambda url: measure_idle(url, seconds), urls))
    for store, figures in zip(bench.stores, found, strict=True):
        report.figures[store] = figures
        table.add(
            store, figures["statements_per_s"], figures["commits_per_s"], figures["cpu_percent"], figures["rss_mb"],
            ", ".join(f"{name} {count}" for name, count in sorted(figures["by_name"].items())),
        )  # fmt: skip
        if store in _LIMITS:
            limit = _LIMITS[store]
            ok = figures["statements_per_s"] <= limit and figures["cpu_percent"] <= 0.3
            reached = f"{figures['statements_per_s']:.2f}/s, {figures['cpu_percent']:.2f} %"
            report.target(f"idle on {store}", f"<= {limit}/s, <= 0.3 % CPU", reached, ok)
    return report


def measure_idle(url: str, seconds: float) -> dict[str, Any]:
    with Children() as children, opened(url) as store:
        load_jobs(store, SCHEDULES, lambda number: f"{number % 60} {number % 24} 29 2 *")
        nodes = start_nodes(children, url, 3, max_running=32)
        time.sleep(6)  # the first looks at the fleet
        before = [node.count() for node in nodes]
        time.sleep(seconds)
        after = [node.count() for node in nodes]
        ends = [node.end() for node in nodes]
    sent: Counter[str] = Counter()
    for a, b in zip(before, after, strict=True):
        sent += Counter(b["counted"]) - Counter(a["counted"])
    spent = sum(b["at"] - a["at"] for a, b in zip(before, after, strict=True))
    cpu = sum(b["cpu"] - a["cpu"] for a, b in zip(before, after, strict=True))
    commits = sent.pop("commit", 0)
    polled = [b["sent"] - a["sent"] for a, b in zip(before, after, strict=True) if b["sent"] is not None]
    return {
        "seconds": round(seconds, 1),
        "statements_per_s": round(sent.total() / spent, 3),
        "commits_per_s": round(commits / spent, 3),
        "sent_per_s": round(sum(polled) / spent, 3) if polled else None,
        "cpu_percent": round(cpu / spent * 100, 3),
        "rss_mb": round(max(end["rss_mb"] for end in ends), 1),
        "by_name": dict(sent),
    }
