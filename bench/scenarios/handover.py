"""Hand-over to Celery on Redis, the writes to the store included, beside `apply_async` alone, in one process."""

from __future__ import annotations

from bench.figures import median
from bench.processes import Child, Children
from bench.report import Report
from bench.scenarios import Bench

__all__ = ["run"]

MAX_RUNNING = 500


def run(bench: Bench) -> Report:
    """The median of the rounds counts; the store of each row is a fresh one, and the broker a Redis of its own."""
    due = 200 if bench.quick else 2_000
    report = Report(
        "handover",
        f"{due} runs of as many jobs fall due in one second; one node claims them, publishes a message of each with "
        "the broker's yes, and writes the offers. The same process sends as many messages by apply_async before.",
    )
    table = report.table("Messages per second", "store", "apply_async", "handed over", "ratio")
    for store in bench.stores:
        with Children() as children:
            orders = {
                "store": bench.servers.fresh(store), "broker": bench.servers.fresh("redis"), "due": due,
                "rounds": max(3, bench.repeat), "max_running": MAX_RUNNING,
            }  # fmt: skip
            child = children.add(Child.module("bench.handing_node", orders))
            child.wait_for("over", 600)
        rounds = child.said["rounds"]
        sent = due / median([one["sent_s"] for one in rounds])
        handed = due / median([one["handed_s"] for one in rounds])
        ratio = median([one["sent_s"] / one["handed_s"] for one in rounds])
        report.figures[store] = {"due": due, "rounds": rounds, "statements": child.said["statements"]}
        table.add(store, sent, handed, ratio)
        if store in ("postgres", "redis"):
            goal, reached = ">= 0.5 x apply_async", f"{ratio:.2f} x ({handed:,.0f}/s)"
            report.target(f"hand-overs, store on {store}", goal, reached, ratio >= 0.5)
    return report
