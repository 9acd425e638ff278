"""Runs the floor beside Solocron: the same number of due documents and processes on the same server."""

from __future__ import annotations

from typing import Any

from bench.figures import busy_s
from bench.fleet import check_log, load_ahead, opened
from bench.processes import Child, Children
from bench.servers import SWAP
from solocron.clock import SECOND

__all__ = ["FLOORS", "measure_floor"]

FLOORS = ("postgres", "sqlite", "redis", *SWAP)


def measure_floor(kind: str, url: str, *, due: int, processes: int, batch: int, within: float) -> dict[str, Any]:
    """Whole lives per second of the bare script; its log is checked like Solocron's."""
    with Children() as children, opened(url) as store:
        for number in range(processes):
            module = "swap" if kind in SWAP else kind
            orders = {"store": url, "kind": module, "number": number + 1, "batch": batch, "processes": processes}
            children.add(Child.module("bench.floor.script", orders))
        for child in children.all:
            child.wait_for("ready", 60)
        instant = load_ahead(store, due)
        worked = busy_s()
        for child in children.all:
            child.tell(str(instant / SECOND))
        ends = [child.wait_for("over", within) and child.said for child in children.all]
        worked = busy_s() - worked
        check_log(store, due, instant)
        cpu = sum(end["cpu_s"] for end in ends)
        seconds = max(end["last"] for end in ends) - instant / SECOND
        return {
            "due": due,
            "processes": processes,
            "batch": batch,
            "runs_per_s": round(due / seconds, 1),
            "cpu_us_per_run": round(cpu / due * 1e6, 1),
            "rest_us_per_run": round((worked - cpu) / due * 1e6, 1),
        }
