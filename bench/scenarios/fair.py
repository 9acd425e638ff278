"""Four processes on one SQLite file: how fast together, and whether each gets its share."""

from __future__ import annotations

from bench.fleet import burst
from bench.report import Report
from bench.scenarios import Bench

__all__ = ["run"]

PROCESSES = 4


def run(bench: Bench) -> Report:
    """synchronous=FULL, as the store sets it."""
    report = Report("fair", f"{PROCESSES} processes on one SQLite file in WAL mode, synchronous=FULL.")
    table = report.table("SQLite", "due", "max_running", "runs/s", "shares", "least share of a fair one")
    due = 2_000 if bench.quick else 20_000
    for max_running in (32, 500) if bench.thorough else (500,):
        found = [
            burst(bench.servers.fresh("sqlite"), due=due, nodes=PROCESSES, max_running=max_running, within=180)
            for _ in range(bench.repeat)
        ]
        best = max(found, key=lambda one: one.rate)
        least = min(min(one.shares) for one in found) / (due / PROCESSES)
        report.figures[str(max_running)] = [one.facts() for one in found]
        table.add(due, max_running, best.rate, " ".join(map(str, best.shares)), least)
        if max_running == 500:
            reached = f"{best.rate:,.0f}/s, {least:.2f} of a share"
            ok = best.rate >= 5000 and least >= 0.5
            report.target("SQLite, 4 processes", ">= 5,000/s, none below half its share", reached, ok)
    return report
