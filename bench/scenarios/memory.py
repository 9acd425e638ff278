"""The weight of a declared job in a process: memory of a node with many jobs against one with none."""

from __future__ import annotations

from bench.fleet import start_nodes
from bench.processes import Children
from bench.report import Report
from bench.scenarios import Bench

__all__ = ["run"]


def run(bench: Bench) -> Report:
    """Report the weight of the program's own functions, one for each job, without counting it.

    A node without jobs has not yet filled SQLite's page caches (2 MB for each connection, whatever is stored) nor
    written a batch: `each further` tells what jobs alone weigh.
    """
    report = Report("memory", "Resident memory of a started node on SQLite, without the functions themselves.")
    columns = ("declared jobs", "RSS MB", "functions MB", "MB per 1,000 jobs", "MB per each further 1,000")
    table = report.table("Memory", *columns)
    sizes = (0, 2_000) if bench.quick else (0, 1_000, 10_000, 20_000)
    expressions = tuple(f"{minute} {hour} * * *" for hour in range(24) for minute in range(0, 60, 5))
    base = before = 0.0
    last = 0
    for size in sizes:
        with Children() as children:
            url = bench.servers.fresh("sqlite")
            node = start_nodes(children, url, 1, max_running=32, declared=size, expressions=expressions)[0]
            functions = node.said["functions_mb"]
            found = node.end()["rss_mb"]
        net = found - functions
        base = base or net
        per = (net - base) / size * 1000 if size else 0.0
        further = (net - before) / (size - last) * 1000 if size else 0.0
        before, last = net, size
        report.figures[str(size)] = {
            "rss_mb": round(found, 2), "functions_mb": round(functions, 2), "per_1000_mb": round(per, 3),
            "further_1000_mb": round(further, 3),
        }  # fmt: skip
        table.add(size, round(found, 1), round(functions, 1), round(per, 2), round(further, 2))
        if size == sizes[-1]:
            report.target("memory per 1,000 declared jobs", "<= 1 MB", f"{per:.2f} MB", per <= 1)
    return report
