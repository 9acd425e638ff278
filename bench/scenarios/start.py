"""A start with very many schedules: declared in code, and stored."""

from __future__ import annotations

from bench.fleet import start_nodes
from bench.processes import Children
from bench.report import Report
from bench.scenarios import Bench

__all__ = ["run"]


def run(bench: Bench) -> Report:
    """The first start writes every definition, the second finds them written."""
    report = Report("start", "Seconds to declare in code, and to start a node on an empty and on a filled store.")
    table = report.table("Start", "store", "declared", "declare s", "first start s", "second start s", "RSS MB")
    size = 2_000 if bench.quick else 100_000
    expressions = tuple(f"{minute} {hour} * * *" for hour in range(24) for minute in range(60))
    for store in bench.stores if bench.thorough or bench.quick else bench.stores[:1]:
        url = bench.servers.fresh(store)
        said = []
        for _ in range(2):
            with Children() as children:
                node = start_nodes(children, url, 1, max_running=32, declared=size, expressions=expressions)[0]
                said.append(dict(node.said))
                node.end(120)
        report.figures[store] = {"declared": size, "starts": said}
        first, second = said
        table.add(
            store, size, round(first["declared_s"], 2), round(first["started_s"], 2), round(second["started_s"], 2),
            round(second["rss_mb"], 1),
        )  # fmt: skip
        if not bench.quick:
            seconds = first["declared_s"] + first["started_s"]
            report.target(f"start with {size:,} on {store}", "seconds", f"{seconds:.1f} s", seconds < 60)
    return report
