"""Solocron and its peers, one after the other on the same server in the same run: the same no-op work due at once."""

from __future__ import annotations

import json
import math
import time
from typing import Any

from bench.environments import PEERS, Peer, python_of
from bench.figures import percentile
from bench.fleet import burst
from bench.peers.left import left_in_store
from bench.processes import Child, Children, wait_until
from bench.report import Report
from bench.scenarios import Bench

__all__ = ["run"]

CONCURRENCY = 500
CLUSTERED = "runs schedules on several nodes"
SINGLE = "runs schedules in one process"
QUEUE = "runs jobs that were put off to the instant"
"""Which is not the same work: nothing is decided, and no next slot is computed."""
_COMES = {True: "schedules", False: "put-off jobs"}
_WITHIN = 90.0
"""Seconds after which what a peer has not done counts as lost."""


def run(bench: Bench) -> Report:
    """A peer that cannot be installed or does not do its work is an error."""
    due = 200 if bench.quick else 1_000
    report = Report("peers", f"{due} no-op jobs due at once; concurrency {CONCURRENCY}; the best of {bench.repeat}.")
    table = report.table(
        "Side by side",
        "scheduler",
        "work comes as",
        "store",
        "nodes",
        "runs/s",
        "from the first body",
        "p50 ms",
        "p99 ms",
        "twice",
        "lost",
    )
    times = report.table("How many times faster Solocron is, with three nodes", "than the best that", "on", "times")
    names = bench.peers or tuple(PEERS)
    best: dict[tuple[str, str], float] = {}
    for store in [store for store in ("postgres", "redis") if store in bench.stores]:
        for peer in [PEERS[name] for name in names if PEERS[name].store == store]:
            for nodes in peer.nodes if bench.thorough else peer.nodes[-1:]:
                found = [_measure(bench, peer, due, nodes) for _ in range(bench.repeat)]
                figures = max(found, key=lambda one: float(one["runs_per_s"]))
                report.figures.setdefault(peer.name, []).append(figures)
                place = (store, _kind(peer))
                best[place] = max(best.get(place, 0.0), figures["runs_per_s"])
                table.add(
                    peer.title, _COMES[peer.schedules], store, nodes, figures["runs_per_s"],
                    figures["from_first_per_s"], figures["p50_ms"], figures["p99_ms"], figures["twice"],
                    figures["lost"],
                )  # fmt: skip
        for nodes in (1, 3) if bench.thorough else (3,):
            tries = [
                burst(bench.servers.fresh(store), due=due, nodes=nodes, max_running=CONCURRENCY, within=_WITHIN)
                for _ in range(bench.repeat)
            ]
            mine = max(tries, key=lambda one: one.rate)
            facts = mine.facts()
            report.figures.setdefault(f"solocron-{store}", []).append(facts)
            first = due / (max(mine.lateness) - min(mine.lateness)) if due > 1 else mine.rate
            table.add(
                "Solocron", _COMES[True], store, nodes, mine.rate, first, facts["lateness_p50_ms"],
                facts["lateness_p99_ms"], 0, 0,
            )  # fmt: skip
            for kind in (CLUSTERED, SINGLE, QUEUE) if nodes == 3 else ():
                if best.get((store, kind)):
                    ratio = mine.rate / best[store, kind]
                    times.add(kind, store, f"{ratio:.1f}")
                    if kind == CLUSTERED:
                        wanted = 10 if store == "postgres" else 20
                        what = f"against the best peer that {kind}, {store}, {due} due"
                        report.target(what, f">= {wanted} x", f"{ratio:.1f} x", ratio >= wanted)
    return report


def _kind(peer: Peer) -> str:
    if not peer.schedules:
        return QUEUE
    return CLUSTERED if max(peer.nodes) > 1 else SINGLE


class _TooLate(Exception):
    """The instant came before the peer was ready for it."""


def _measure(bench: Bench, peer: Peer, due: int, nodes: int) -> dict[str, Any]:
    """One measurement; a peer that needs longer to be loaded and started gets the time that it needs."""
    lead = 8 + due / 100 + 2 * nodes
    for longer in (1, 3, 9):
        try:
            return _try(bench, peer, due, nodes, lead * longer)
        except _TooLate:
            continue
    raise RuntimeError(f"{peer.title} was not ready within {9 * lead:.0f} s")


def _try(bench: Bench, peer: Peer, due: int, nodes: int, lead: float) -> dict[str, Any]:
    python = python_of(peer, bench.folder)
    url = bench.servers.fresh(peer.store)
    instant = math.ceil(time.time() + lead)
    orders = {"url": url, "due": due, "instant": instant, "concurrency": CONCURRENCY}

    def child(role: str) -> Child:
        command = [python, "-m", f"bench.peers.{peer.name}", json.dumps({**orders, "role": role})]
        return children.add(Child(command))

    with Children() as children:
        try:
            child("load").wait_for("over", lead)
        except TimeoutError:
            raise _TooLate from None
        workers = [child("node") for _ in range(nodes)]
        for worker in workers:
            worker.wait_for("ready", 60)
        if time.time() > instant - 0.5:
            raise _TooLate
        try:
            wait_until(
                lambda: sum(worker.said.get("finished", 0) for worker in workers) >= due,
                lead + _WITHIN,
                f"{peer.title}: {due} runs: {workers[0].errors[-500:]}",
            )
            with left_in_store(peer.name, url, instant) as left:
                wait_until(lambda: left() == 0, _WITHIN, f"{peer.title}: the outcomes in its store")
        except TimeoutError:
            if not any(worker.said.get("finished") for worker in workers):
                raise
        finished = time.time()
        time.sleep(1.0)  # whatever else it would run
        ends = [worker.end() for worker in workers]
    stamps = sorted(at for end in ends for at in end["stamps"])
    late = [at - instant for at in stamps]
    return {
        "due": due,
        "nodes": nodes,
        "runs_per_s": round(due / (finished - instant), 1),
        "from_first_per_s": round(due / max(stamps[-1] - stamps[0], 1e-6), 1),
        "p50_ms": round(percentile(late, 50) * 1000, 1),
        "p99_ms": round(percentile(late, 99) * 1000, 1),
        "twice": max(0, len(stamps) - due),
        "lost": max(0, due - len(stamps)),
    }
