"""The HTTP service: what requests take with ten thousand jobs and a million records, and what open pages cost."""

from __future__ import annotations

import re
import time
from dataclasses import asdict, dataclass
from typing import Any

from bench.figures import median, percentile
from bench.fleet import opened, start_nodes
from bench.history import DAY, add_nodes, fill_log
from bench.load import job_name, load_jobs
from bench.processes import Child, Children, wait_until
from bench.report import Report
from bench.scenarios import Bench
from solocron.client import Client
from solocron.clock import iso
from solocron.service.handle import Service
from solocron.service.request import RequestHead, make_request_id
from solocron.service.roles import Role
from solocron.service.tokens import FixedTokens, TokenEntry, hash_of, new_token
from solocron.stores.contract import Store
from solocron.testing.conformance.kit import counts_of

__all__ = ["run"]

PAGES = 20
_AT_MOST_MS = 50.0
_JOB = re.compile(r"job-\d{7}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[^&]*")
_WITHOUT_STORE = ("/api/v1/me", "/health/live")


def run(bench: Bench) -> Report:
    """Every request is asked in this process, without a socket: the budget is that of the service and its store."""
    jobs, records = (1_000, 20_000) if bench.quick else (10_000, 1_000_000)
    report = Report(
        "service", f"{jobs:,} jobs and {records:,} records of one day; and a fleet with {PAGES} open pages."
    )
    found = {}
    for store in bench.stores:
        found[store] = _ask_all(bench.servers.fresh(store), jobs, records, times=5 if bench.quick else 40)
        report.figures[store] = found[store]
    table = report.table(
        "Milliseconds of a request, median / 95th percentile",
        *("request", *bench.stores, "statements", "kB"),
    )  # fmt: skip
    for path, shown in _shown(found).items():
        table.add(path, *shown)
    for store, figures in found.items():
        slowest, path = max((one["p95_ms"], path) for path, one in _named(figures["requests"]).items())
        report.target(
            f"{store}: slowest request, p95", f"<= {_AT_MOST_MS:g} ms", f"{slowest:.1f} ms, `{path}`",
            slowest <= _AT_MOST_MS,
        )  # fmt: skip
        report.target(
            f"{store}: statements of the watcher in a second", "<= 2", f"{figures['watcher']['statements_per_s']:.2f}",
            figures["watcher"]["statements_per_s"] <= 2,
        )  # fmt: skip
    _open_pages(bench, report)
    return report


def _shown(found: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Return a line for each request: its times on each store, and the most statements and bytes that it took."""
    lines: dict[str, list[str]] = {}
    for path in _named(next(iter(found.values()))["requests"]):
        ones = [_named(figures["requests"])[path] for figures in found.values()]
        times = [f"{one['p50_ms']:.3g} / {one['p95_ms']:.3g}" for one in ones]
        statements, size = max(one["statements"] for one in ones), max(one["kb"] for one in ones)
        lines[f"`{path}`"] = [*times, str(statements), f"{size:g}"]
    return lines


def _named(requests: dict[str, Any]) -> dict[str, Any]:
    """Return the requests by their addresses as readers know them: without the instants and the name of the job."""
    return {_TIME.sub("...", _JOB.sub("{job}", path)): one for path, one in requests.items()}


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
    """Runs per second with open pages against without, in turn, so that a drift of the machine hits both."""
    table = report.table(
        f"A fleet that is always behind, with {PAGES} open pages",
        *("store", "with, runs/s", "without, runs/s", "ratio", "service, % of a core", "readers, % of a core"),
        *("fetches/s", "pages changed/s"),
    )
    for store in bench.stores:
        found = _pairs(bench, store)
        ratio = median([one.watched.rate / one.alone.rate for one in found])
        watched = [one.watched for one in found]
        report.figures.setdefault("open pages", {})[store] = [asdict(one) for one in found]
        table.add(
            store, median([one.rate for one in watched]), median([one.alone.rate for one in found]), round(ratio, 3),
            *(median([one.shares[name] for one in watched]) for name in ("service", "readers", "fetched", "changed")),
        )  # fmt: skip
        report.target(
            f"{store}: runs per second with {PAGES} pages open", ">= 0.98 of without", f"{ratio:.3f}", ratio >= 0.98
        )


@dataclass(frozen=True, slots=True)
class _Work:
    """Some seconds of a fleet's work: runs per second, and what the open pages took in each second."""

    rate: float
    shares: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Pair:
    watched: _Work
    alone: _Work


def _pairs(bench: Bench, store: str) -> list[_Pair]:
    found = []
    for turn in range(1 if bench.quick else max(bench.repeat, 3)):
        order = (True, False) if turn % 2 else (False, True)
        made = {watched: _work(bench, bench.servers.fresh(store), watched=watched) for watched in order}
        found.append(_Pair(made[True], made[False]))
    return found


def _work(bench: Bench, url: str, *, watched: bool) -> _Work:
    """Let two nodes work on more than they can do, and count what they finish.

    More jobs are due in each second than two cores can run, so that every second of a core which the pages take is
    missing in the figure. The service begins before the nodes, and knows the jobs when the count begins.
    """
    jobs, seconds = (2_000, 5.0) if bench.quick else (10_000, 20.0)
    with Children() as children, opened(url) as store:
        load_jobs(store, jobs, lambda number: "* * * * * *")
        viewers = children.add(Child.module("bench.viewers", {"store": url, "pages": PAGES})) if watched else None
        if viewers is not None:
            viewers.wait_for("ready", 90)
        nodes = start_nodes(children, url, 2, max_running=500)
        try:
            wait_until(lambda: children.total("finished") >= 2 * jobs, 120, "the fleet runs")
            before = None if viewers is None else viewers.count()
            begun, first = time.perf_counter(), children.total("finished")
            time.sleep(seconds)
            last, took = children.total("finished"), time.perf_counter() - begun
            after = None if viewers is None else viewers.count()
        finally:
            if viewers is not None:  # killed, it would leave its service behind
                viewers.end()
        ran = sum(len(node.end()["stamps"]) for node in nodes)
        recorded = counts_of(store).get("succeeded", 0)
        if recorded != ran:
            raise RuntimeError(f"{ran} bodies ran, but {recorded} runs are recorded as succeeded")
        return _Work((last - first) / took, {} if before is None or after is None else _shares(before, after))


def _shares(before: dict[str, Any], after: dict[str, Any]) -> dict[str, float]:
    took = after["at"] - before["at"]
    return {
        "service": 100 * (after["cpu"] - before["cpu"]) / took,
        "readers": 100 * (after["counted"]["cpu"] - before["counted"]["cpu"]) / took,
        **{name: (after["counted"][name] - before["counted"][name]) / took for name in ("told", "fetched", "changed")},
    }
