"""One job, nothing else due: how late its body starts, with five nodes that all wake for it."""

from __future__ import annotations

from typing import Any

from bench.figures import percentile
from bench.fleet import opened, start_nodes
from bench.load import load_jobs
from bench.processes import Children, wait_until
from bench.report import Report
from bench.scenarios import Bench
from solocron.clock import SECOND
from solocron.stores.contract import Query, Store

__all__ = ["measure_lateness", "run"]


def run(bench: Bench) -> Report:
    """A job that is due every second, for as many seconds as there are samples."""
    report = Report("lateness", "One job that is due each second, nothing else; start of the body after its instant.")
    table = report.table("Lateness of one job", "store", "nodes", "samples", "p50 ms", "p99 ms", "worst ms")
    samples = 10 if bench.quick else 200  # fewer have no 99th of a hundred but their worst
    stores = [store for store in bench.stores if store in ("postgres", "redis") or bench.thorough]
    for store in stores:
        for nodes in (1, 5) if bench.thorough else (5,):
            figures = measure_lateness(bench.servers.fresh(store), nodes, samples)
            report.figures.setdefault(store, []).append(figures)
            table.add(store, nodes, samples, figures["p50_ms"], figures["p99_ms"], figures["worst_ms"])
            if nodes == 5 and store == "postgres":
                ok = figures["p50_ms"] <= 10 and figures["p99_ms"] <= 50
                reached = f"{figures['p50_ms']:.1f} / {figures['p99_ms']:.1f} ms"
                report.target("lateness of one job, 5 nodes", "p50 <= 10 ms, p99 <= 50 ms", reached, ok)
    return report


def measure_lateness(url: str, nodes: int, samples: int) -> dict[str, Any]:
    with Children() as children, opened(url) as store:
        load_jobs(store, 1, lambda number: "* * * * * *")
        started = start_nodes(children, url, nodes, max_running=32)
        # Nodes that begin together wait for each other's first renewal; what falls due meanwhile is caught up first.
        wait_until(lambda: _newest(store) > store.clock() - SECOND, 60, "a slot that is run when it is due")
        want = children.total("finished") + samples + 2
        wait_until(lambda: children.total("finished") >= want, samples + 60, f"{want} runs")
        ends = [node.end() for node in started]
        records = store.history(Query(limit=10_000)).records
    slots = sorted(record.slot for record in records if record.status == "succeeded" and record.slot is not None)
    bodies = sorted(at for end in ends for at in end["stamps"])
    if len(slots) != len(bodies) or len(set(slots)) != len(slots):
        raise RuntimeError(f"{len(bodies)} bodies for {len(slots)} slots")
    late = [(at - slot / SECOND) * 1000 for at, slot in zip(bodies, slots, strict=True)][-samples:]
    return {
        "nodes": nodes,
        "p50_ms": round(percentile(late, 50), 2),
        "p99_ms": round(percentile(late, 99), 2),
        "worst_ms": round(max(late), 2),
        "first_slot": slots[0] // SECOND,
    }


def _newest(store: Store) -> int:
    """Return the latest slot that has run; 0 before the first."""
    records = store.history(Query(limit=1)).records
    return (records[0].slot or 0) if records else 0
