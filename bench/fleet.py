"""Solocron under load: nodes in processes of their own, jobs that fall due at one instant, and the check of the log."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bench.figures import busy_s, load_now, percentile
from bench.load import daily_at, load_jobs
from bench.processes import Child, Children, wait_until
from solocron.clock import SECOND
from solocron.stores.contract import Query, Store
from solocron.stores.url import make_store

__all__ = ["Burst", "burst", "check_log", "load_ahead", "opened", "start_nodes"]

_READY = 60.0
_LOADED = {"etcd": 500, "nats": 500, "zookeeper": 500, "mongodb": 500, "azblob": 1_000, "dynamodb": 80}
"""Jobs per second that a store of ordered keys is given time to be loaded with; the others take 3,000."""


@contextmanager
def opened(url: str, namespace: str = "default") -> Iterator[Store]:
    """A client of the store for loading and checking."""
    store = make_store(url, namespace=namespace)
    store.open()
    try:
        yield store
    finally:
        store.close()


def start_nodes(
    children: Children,
    url: str,
    count: int,
    *,
    max_running: int,
    lease: str = "15s",
    declared: int = 0,
    expressions: tuple[str, ...] = (),
    namespace: str = "default",
) -> list[Child]:
    """Start nodes and wait until each holds a session."""
    nodes = [
        children.add(
            Child.module(
                "bench.node",
                {
                    "store": url,
                    "node": f"n{number}",
                    "max_running": max_running,
                    "lease": lease,
                    "declared": declared,
                    "expressions": list(expressions),
                    "namespace": namespace,
                },
            )
        )
        for number in range(1, count + 1)
    ]
    for node in nodes:
        node.wait_for("ready", _READY * max(1.0, load_now() / 4) + declared / 200)
    return nodes


@dataclass(slots=True)
class Burst:
    """The outcome of jobs that fell due together."""

    due: int
    nodes: int
    max_running: int
    seconds: float
    lateness: list[float]
    shares: list[int]
    cpu_s: float
    busy_s: float
    """Seconds that the machine's cores worked meanwhile, the nodes' part of it included."""
    statements: Counter[str] = field(default_factory=Counter)

    @property
    def rate(self) -> float:
        return self.due / self.seconds

    def facts(self) -> dict[str, Any]:
        commits = self.statements["commit"]
        sent = self.statements.total() - commits
        return {
            "due": self.due,
            "nodes": self.nodes,
            "max_running": self.max_running,
            "seconds": round(self.seconds, 3),
            "runs_per_s": round(self.rate, 1),
            "lateness_p50_ms": round(percentile(self.lateness, 50) * 1000, 2),
            "lateness_p99_ms": round(percentile(self.lateness, 99) * 1000, 2),
            "statements_per_run": round(sent / self.due, 4),
            "commits_per_run": round(commits / self.due, 4),
            "cpu_us_per_run": round(self.cpu_s / self.due * 1e6, 1),
            "rest_us_per_run": round((self.busy_s - self.cpu_s) / self.due * 1e6, 1),
            "shares": self.shares,
        }


def burst(url: str, *, due: int, nodes: int, max_running: int, within: float) -> Burst:
    """`due` jobs of one handler fall due at one instant; until the last outcome is in the store."""
    with Children() as children, opened(url) as store:
        started = start_nodes(children, url, nodes, max_running=max_running)
        instant = load_ahead(store, due)
        assert all("finished" not in node.said for node in started), "nothing was due yet"
        before, worked = [node.count() for node in started], busy_s()  # what the loading cost them is not a run's
        wait_until(lambda: children.total("finished") >= due, within, f"{due} runs, {children.total('finished')} done")
        after, worked = [node.count() for node in started], busy_s() - worked
        ends = [node.end() for node in started]
        check_log(store, due, instant)
        stamps = [at - instant / SECOND for end in ends for at in end["stamps"]]
        if len(stamps) != due:
            raise RuntimeError(f"{len(stamps)} bodies ran for {due} slots")
        statements: Counter[str] = Counter()
        for then, now in zip(before, after, strict=True):
            statements.update(now["counted"])
            statements.subtract(then["counted"])
        return Burst(
            due=due,
            nodes=nodes,
            max_running=max_running,
            seconds=max(end["last"] for end in ends) - instant / SECOND,
            lateness=stamps,
            shares=[end["finished"] for end in ends],
            cpu_s=sum(now["cpu"] - then["cpu"] for then, now in zip(before, after, strict=True)),
            busy_s=worked,
            statements=statements,
        )


def load_ahead(store: Store, due: int, first: int = 0, **options: Any) -> int:
    """Write jobs that fall due at one whole second, all of them before it comes."""
    slow = next((pace for scheme, pace in _LOADED.items() if store.url.startswith(scheme)), 3_000)
    lead = 1.5 + due / slow * max(1.0, load_now() / 2)
    instant = math.ceil(store.clock() / SECOND + lead) * SECOND
    load_jobs(store, due, lambda number: daily_at(instant), first=first, **options)
    if store.clock() > instant - SECOND // 5:
        raise RuntimeError(f"the machine is too busy: {due} jobs were not written within {lead:.1f} s")
    return instant


def check_log(store: Store, due: int, instant: int, *, runs: int = 1) -> None:
    """Every slot was recorded once: one record per job and slot, all of them succeeded at the first attempt."""
    records = store.history(Query(limit=due * runs + 10)).records
    slots = Counter((record.job, record.slot) for record in records)
    if len(records) != due * runs or len(slots) != due * runs:
        raise RuntimeError(f"{due * runs} slots, but {len(records)} records of {len(slots)} slots")
    bad = [record for record in records if record.status != "succeeded" or record.attempt != 1]
    if bad:
        raise RuntimeError(f"{len(bad)} runs did not succeed at once, such as {bad[0]}")
    if runs == 1 and any(record.slot != instant for record in records):
        raise RuntimeError("a slot of another instant was recorded")
