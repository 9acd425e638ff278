"""What a declared job weighs in a process: memory of a node with many jobs against one with none."""

from __future__ import annotations

from bench.fleet import start_nodes
from bench.processes import Children
from bench.report import Report
from bench.scenarios import Bench

__all__ = ["run"]


def run(bench: Bench) -> Report:
    """The functions themselves are counted too: each job has one of its own, as in a program."""
    report = Report("memory", "Resident memory of a started node on SQLite, its functions included.")
    table = report.table("Memory", "declared jobs", "RSS MB", "MB per 1,000 jobs")
    sizes = (0, 2_000) if bench.quick else (0, 1_000, 10_000)
    base = 0.0
    for size in sizes:
        expressions = tuple(f"{minute} {hour} * * *" for hour in range(24) for minute in range(0, 60, 5))
        with Children() as children:
            url = bench.servers.fresh("sqlite")
            node = start_nodes(children, url, 1, max_running=32, declared=size, expressions=expressions)[0]
            found = node.end()["rss_mb"]
        base = base or found
        per = (found - base) / size * 1000 if size else 0.0
        report.figures[str(size)] = {"rss_mb": round(found, 2), "per_1000_mb": round(per, 3)}
        table.add(size, round(found, 1), round(per, 2))
        if size == sizes[-1]:
            report.target("memory per 1,000 declared jobs", "<= 1 MB", f"{per:.2f} MB", per <= 1)
    return report
