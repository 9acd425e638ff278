"""`solocron top`: the fleet at work, drawn again and again: nodes, what runs, what comes next, what is wrong."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.alarm_rows import grouped
from solocron.cli.arguments import add_store
from solocron.cli.exits import OK
from solocron.cli.moments import span, utc
from solocron.cli.opening import opened
from solocron.duration import parse_duration
from solocron.errors import InvalidError

if TYPE_CHECKING:
    from solocron.cli.keys import View
    from solocron.client import Client
    from solocron.views import CarrierView, HoldView, NodeView, StatusView

__all__ = ["add_arguments", "execute", "frame"]

_NEXT = 10
_LEAST = 0.2
"""Seconds between two looks at the least: each asks the store."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--every", metavar="TIME", default="1s", help="how often it looks (default: 1s)")
    parser.add_argument("--pool", metavar="NAME", help="only nodes of this pool")
    parser.add_argument("--job", metavar="TEXT", help="only jobs whose names contain this")
    parser.add_argument("--once", action="store_true", help="print one frame and end, for scripts")
    add_store(parser)


def execute(args: Namespace) -> int:
    from solocron.cli.keys import View, watch_with_keys

    every = parse_duration(args.every, what="--every").total_seconds()
    if every < _LEAST:
        raise InvalidError(f"--every {args.every}: give at least {_LEAST} s; each look asks the store.")
    view = View(job=args.job or "", pool=args.pool)
    with opened(args) as client:
        if args.once:
            frame(client, view)
            return OK
        if not (sys.stdout.isatty() and sys.stdin.isatty()):
            raise InvalidError("top draws on a terminal, and stdout or stdin is not one; use --once. Nothing was read.")
        watch_with_keys(lambda: frame(client, view), view, every=every)
    return OK


def frame(client: Client, view: View) -> None:
    """Print the fleet as it stands."""
    found = client.status()
    counts = ", ".join(f"{number} {name}" for name, number in found.counts.items() if number) or "nothing on record"
    unserved = ", ".join(
        f"pool {pool} ({jobs} {'jobs' if jobs > 1 else 'job'})" for pool, jobs in found.unserved.items()
    )
    rows = [
        ("fleet", f"{found.namespace} in {found.store}, {utc(found.now)} UTC{view.said}"),
        ("24 hours", counts),
        ("paused", ", ".join(found.paused)),
        ("no node", unserved),
    ]
    output.pairs([(label, text) for label, text in rows if text], wrap=True)
    nodes = [node for node in found.nodes if view.pool is None or view.pool in node.pools]
    print()
    output.table(
        ["NODE", "STATE", " RUNNING", " LEASE LEFT", " SKEW", "POOLS"], [_node(one, found.now) for one in nodes]
    )
    if found.carriers:
        print()
        headers = ["CARRIER", " IN ITS QUEUE", " LONGEST WAIT", " PICKED UP"]
        output.table(headers, [_carrier(one, found.now) for one in found.carriers])
    running = sorted((one for one in found.running if view.job in one.job), key=view.place)
    print()
    output.table(
        ["RUNNING", "SLOT (UTC)", " ATTEMPT", "NODE", " FOR", " OF", "PROGRESS"],
        [_run(one, found.now) for one in running],
    )
    print()
    output.table(["NEXT", "DUE (UTC)", " IN"], _upcoming(client, view, found))
    if found.alarms:
        print()
        output.table(["ALARM", "STATE", "OF", "SINCE (UTC)", "WHY"], grouped(found.alarms))


def _node(node: NodeView, now: datetime) -> Sequence[str]:
    places = str(node.running) if node.max_running is None else f"{node.running} of {node.max_running}"
    left = max(timedelta(), node.expires_at - now)
    skew = "-" if node.skew_s is None else f"{node.skew_s:+.2f} s"
    return node.node, node.state, places, span(round(left.total_seconds(), 1)), skew, ",".join(node.pools)


def _carrier(carrier: CarrierView, now: datetime) -> Sequence[str]:
    longest = "-" if carrier.since is None else span(round((now - carrier.since).total_seconds(), 1))
    return carrier.carrier, str(carrier.offered), longest, str(carrier.running)


def _run(run: HoldView, now: datetime) -> Sequence[str]:
    since = run.started_at or run.claimed_at or run.slot
    limit = "-" if run.deadline is None else span(run.deadline - since)
    state = "stuck" if run.stuck else "stopping" if run.stopping else _progress(run.progress)
    taken = span(round(max(now - since, timedelta()).total_seconds(), 1))
    return run.job, utc(run.slot), str(run.attempt), run.node or "-", taken, limit, state


def _progress(progress: object) -> str:
    if not isinstance(progress, dict):
        return ""
    done, total, note = (progress.get(name) for name in ("done", "total", "note"))
    part = "" if done is None else f"{done}" if total is None else f"{done} of {total}"
    return " ".join(word for word in (part, note or "") if word)


def _upcoming(client: Client, view: View, found: StatusView) -> Iterator[Sequence[str]]:
    """Yield the jobs that are due next; of those that are due already, by how much they are late."""
    from solocron.clock import from_us

    shown = 0
    for due, name in client.store.due_times(_NEXT * (10 if view.job else 1)):
        if view.job in name and shown < _NEXT:
            shown += 1
            at = from_us(due)
            wait = (at - found.now).total_seconds()
            yield name, utc(at), span(round(wait, 1)) if wait >= 0 else f"late {span(round(-wait, 1))}"
