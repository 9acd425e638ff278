"""The HTTP service: what requests take with ten thousand jobs and a million records, and what open pages cost."""

from __future__ import annotations

import time
from typing import Any

from bench.figures import median, percentile
from bench.fleet import burst, opened
from bench.history import DAY, add_nodes, fill_log
from bench.load import job_name, load_jobs
from bench.processes import Child, Children
from bench.report import Report
from bench.scenarios import Bench
from solocron.client import Client
from solocron.clock import iso
from solocron.service.handle import Service
from solocron.service.request import RequestHead, make_request_id
from solocron.service.roles import Role
from solocron.service.tokens import FixedTokens, TokenEntry, hash_of, new_token
from solocron.stores.contract import Store

__all__ = ["run"]

PAGES = 20
_AT_MOST_MS = 50.0
_WITHOUT_STORE = ("/api/v1/me", "/health/live")


def run(bench: Bench) -> Report:
    """Every request is asked in this process, without a socket: the budget is that of the service and its store."""
    jobs, records = (1_000, 20_000) if bench.quick else (10_000, 1_000_000)
    report = Report(
        "service", f"{jobs:,} jobs and {records:,} records of one day; and a burst with {PAGES} open pages."
    )
    table = report.table(
        "What a request takes", *("store", "request", "p50 ms", "p95 ms", "statements", "kB"),
    )  # fmt: skip
    for store in bench.stores:
        found = _ask_all(bench.servers.fresh(store), jobs, records, times=5 if bench.quick else 20)
        report.figures[store] = found
        for path, figures in found["requests"].items():
            table.add(store, path, figures["p50_ms"], figures["p95_ms"], figures["statements"], figures["kb"])
        slowest = max(one["p95_ms"] for one in found["requests"].values())
        report.target(
            f"{store}: slowest request, p95", f"<= {_AT_MOST_MS:g} ms", f"{slowest:.1f} ms", slowest <= _AT_MOST_MS
        )
        report.target(
            f"{store}: statements of the watcher in a second", "<= 2", f"{found['watcher']['statements_per_s']:.2f}",
            found["watcher"]["statements_per_s"] <= 2,
        )  # fmt: skip
    _open_pages(bench, report)
    return report


def _ask_all(url: str, jobs: int, records: int, *, times: int) -> dict[str, Any]:
    with opened(url) as store:
        now = store.clock()
        load_jobs(store, jobs, lambda number: f"{number % 60} {number // 60 % 60} {number // 3600 % 24} * * *")
        begun = time.perf_counter()
        fill_log(store, jobs, records, until=now)
        add_nodes(store, until=now)
        if url.startswith("postgres"):
            _analyze(url)
        filled = time.perf_counter() - begun
        token = new_token()
        client = Client(store)
        service = Service(client, tokens=FixedTokens(TokenEntry("bench", Role.OPERATE, hash_of(token))))
        found = {path: _ask(service, store, token, path, times) for path in _requests(jobs, now)}
        return {"fill_s": round(filled, 1), "requests": found, "watcher": _watch(service, store)}


def _analyze(url: str) -> None:
    """Do now what the server would do by itself, in the middle of the measurement."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        db.execute("VACUUM ANALYZE")


def _requests(jobs: int, now: int) -> list[str]:
    name, day_ago = job_name(jobs // 2), iso(now - DAY)
    hour_ago = iso(now - DAY // 24)
    return [
        "/api/v1/status",
        "/api/v1/accounting",
        "/api/v1/jobs",
        "/api/v1/jobs?q=999",
        "/api/v1/jobs?state=failing",
        "/api/v1/jobs?state=late",
        f"/api/v1/jobs/{name}",
        f"/api/v1/jobs/{name}/runs",
        f"/api/v1/jobs/{name}/slots?from={day_ago}&to={iso(now)}",
        f"/api/v1/jobs/{name}/why?at={iso(now)}",
        f"/api/v1/jobs/{name}/durations",
        "/api/v1/runs",
        "/api/v1/runs?status=failed",
        "/api/v1/runs?status=lost",
        "/api/v1/runs?node=nowhere",
        f"/api/v1/timeline?from={hour_ago}&to={iso(now)}",
        "/api/v1/nodes",
        "/api/v1/alarms",
        "/api/v1/audit",
        "/",
        "/?span=24h",
        "/?lanes=job",
        "/jobs",
        "/jobs?sort=name",
        "/jobs?sort=next",
        "/jobs?q=999",
        "/jobs?state=not_well",
        f"/jobs/{name}",
        f"/jobs/{name}/why",
        "/runs",
        "/runs?status=failed",
        "/nodes",
        "/audit",
        "/find?q=job-00099",
        *_WITHOUT_STORE,
    ]


def _ask(service: Service, store: Store, token: str, path: str, times: int) -> dict[str, Any]:
    took, sent, size = list[float](), 0, 0
    where, _, query = path.partition("?")
    for turn in range(times + 1):
        head = RequestHead(
            id=make_request_id(), method="GET", path=where, query=query.replace(":", "%3A"), address="127.0.0.1",
            headers=(("host", "localhost"), ("authorization", f"Bearer {token}"), ("accept-encoding", "gzip")),
        )  # fmt: skip
        service.watcher.look()  # as its own thread does it in a server, beside the requests
        before, begun = store.statements.total(), time.perf_counter()
        response = service.handle(head)
        if response.status != 200:
            raise RuntimeError(f"{path}: {response.status} {response.body[:200]!r}")
        if turn:  # the first one after a start may count hours and read jobs that are kept afterwards
            took.append((time.perf_counter() - begun) * 1000)
            sent, size = max(sent, store.statements.total() - before), len(response.body)
    return {
        "p50_ms": round(median(took), 2),
        "p95_ms": round(percentile(took, 95), 2),
        "statements": sent,
        "kb": round(size / 1024, 1),
    }


def _watch(service: Service, store: Store) -> dict[str, Any]:
    """Measure passes once every job was compared; ten of them are twenty seconds."""
    whole = False
    while not whole:
        service.watcher.look(at_once=True)
        _, _, whole = service.watcher.accounting.verdict
    took, before = list[float](), store.statements.total()
    for _ in range(10):
        begun = time.perf_counter()
        service.watcher.look(at_once=True)
        took.append((time.perf_counter() - begun) * 1000)
    return {
        "p50_ms": round(median(took), 2),
        "p95_ms": round(percentile(took, 95), 2),
        "statements_per_s": (store.statements.total() - before) / 20,
    }


def _open_pages(bench: Bench, report: Report) -> None:
    """Runs per second of a burst with open pages against without, in turn, so that a drift of the machine hits both."""
    table = report.table(f"A burst with {PAGES} open pages", *("store", "with, runs/s", "without, runs/s", "ratio"))
    due = 1_000 if bench.quick else 20_000
    for store in bench.stores:
        rates: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(max(bench.repeat, 1 if bench.quick else 3)):
            for watched in (True, False):
                rates[watched].append(_burst(bench.servers.fresh(store), due, watched=watched))
        ratio = median(rates[True]) / median(rates[False])
        report.figures.setdefault("open pages", {})[store] = {"with": rates[True], "without": rates[False]}
        table.add(store, median(rates[True]), median(rates[False]), round(ratio, 3))
        report.target(
            f"{store}: runs per second with {PAGES} pages open", ">= 0.98 of without", f"{ratio:.3f}", ratio >= 0.98
        )


def _burst(url: str, due: int, *, watched: bool) -> float:
    with opened(url):
        pass  # the service shows what is there: the store must be
    with Children() as children:
        viewers = children.add(Child.module("bench.viewers", {"store": url, "pages": PAGES})) if watched else None
        if viewers is not None:
            viewers.wait_for("ready", 90)
        try:
            found = burst(url, due=due, nodes=2, max_running=500, within=180)
        finally:
            if viewers is not None:  # killed, it would leave its service behind
                viewers.end()
        return found.due / found.seconds
