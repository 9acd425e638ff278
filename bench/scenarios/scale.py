"""The growth of cost with the number of stored schedules: a thousand due each second among up to a million."""

from __future__ import annotations

import math
from typing import Any

from bench.figures import load_now, percentile
from bench.fleet import opened, start_nodes
from bench.load import copy_into_postgres
from bench.processes import Children, wait_until
from bench.report import Report
from bench.scenarios import Bench
from solocron.clock import SECOND
from solocron.stores.contract import Query

__all__ = ["run"]

PER_SECOND = 1_000


def run(bench: Bench) -> Report:
    """PostgreSQL, three nodes. Those that are not due now are spread over the next day."""
    report = Report("scale", f"{PER_SECOND} due per second for some seconds, three nodes, max_running=500, PostgreSQL.")
    table = report.table(
        "By stored schedules",
        *("schedules", "p50 ms", "p99 ms", "claim: ms per call", "claim: us per run", "claim: pages per run"),
        *("node MB", "CPU us/run"),
    )
    sizes = (1_000, 10_000) if bench.quick else (1_000, 10_000, 100_000, 1_000_000)
    seconds = 3 if bench.quick else 20 if bench.thorough else 10
    for size in sizes:
        fresh = bench.servers.fresh
        found = [_measure(fresh("postgres"), size, min(seconds, size // PER_SECOND)) for _ in range(bench.repeat)]
        figures = min(found, key=lambda one: float(one["claim_us_per_run"]))
        report.figures[str(size)] = figures
        table.add(
            size, figures["p50_ms"], figures["p99_ms"], figures["claim_ms"], figures["claim_us_per_run"],
            figures["claim_pages_per_run"], figures["node_mb"], figures["cpu_us_per_run"],
        )  # fmt: skip
    if "1000000" in report.figures:
        million, some = report.figures["1000000"], report.figures["10000"]
        report.target(
            "1,000,000 schedules, lateness", "p99 <= 1 s", f"{million['p99_ms']:.0f} ms", million["p99_ms"] <= 1000
        )
        ratio = million["claim_us_per_run"] / some["claim_us_per_run"]
        report.target("claim cost against 10,000, time", "<= 1.3 x", f"{ratio:.2f} x", ratio <= 1.3)
        ratio = million["claim_pages_per_run"] / some["claim_pages_per_run"]
        report.target("claim cost against 10,000, pages of the server", "<= 1.3 x", f"{ratio:.2f} x", ratio <= 1.3)
        grown = million["node_mb"] - some["node_mb"]
        report.target("node memory against 10,000", "does not grow", f"{grown:+.1f} MB", grown < 5)
    return report


def _measure(url: str, size: int, seconds: int) -> dict[str, Any]:
    import psycopg

    due = seconds * PER_SECOND
    with Children() as children, opened(url) as store:
        nodes = start_nodes(children, url, 3, max_running=500)
        start = math.ceil(store.clock() / SECOND + 3 + size / 12_000 * max(1.0, load_now() / 2)) * SECOND
        far = start + 3600 * SECOND

        def due_at(number: int) -> int:
            if number < due:
                return start + number // PER_SECOND * SECOND
            return far + (number * 7919 % 72_000) * SECOND

        copy_into_postgres(url, size, due_at)
        with psycopg.connect(url, autocommit=True) as db:
            # Now: the server would do both by itself, in the middle of the measurement.
            db.execute("VACUUM ANALYZE")
            db.execute("CHECKPOINT")
        if store.clock() > start - SECOND // 2:
            raise RuntimeError(f"{size} schedules were not loaded in time; the machine is too busy")
        store.signal()
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            db.execute("SELECT pg_stat_statements_reset()")
            wait_until(lambda: children.total("finished") >= due, size / 10_000 + 90 + seconds, f"{due} runs")
            calls, total, pages = db.execute(
                "SELECT sum(calls), sum(total_exec_time), sum(shared_blks_hit + shared_blks_read) "
                "FROM pg_stat_statements WHERE query ~ 'SKIP LOCKED'"
            ).fetchone() or (0, 0.0, 0)
        ends = [node.end() for node in nodes]
        records = store.history(Query(limit=due + 10)).records
    jobs = {record.job for record in records}
    if len(records) != due or len(jobs) != due or any(record.status != "succeeded" for record in records):
        raise RuntimeError(f"{due} slots, {len(records)} records of {len(jobs)} jobs")
    late = [(record.started_at or 0) / 1000 - record.slot / 1000 for record in records]
    return {
        "schedules": size,
        "due": due,
        "p50_ms": round(percentile(late, 50), 1),
        "p99_ms": round(percentile(late, 99), 1),
        "claim_ms": round(float(total) / float(calls), 3),
        "claim_us_per_run": round(float(total) * 1000 / due, 2),
        "claim_pages_per_run": round(float(pages) / due, 2),
        "claims": int(calls),
        "node_mb": round(max(end["rss_mb"] for end in ends), 1),
        "cpu_us_per_run": round(sum(end["cpu_s"] for end in ends) / due * 1e6, 1),
    }
