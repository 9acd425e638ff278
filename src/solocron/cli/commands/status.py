"""`solocron status`: nodes, running attempts, the last 24 hours, and what needs attention."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.alarm_rows import grouped
from solocron.cli.arguments import add_listing as add_arguments
from solocron.cli.exits import FAILED, OK
from solocron.cli.host import in_its_words, program
from solocron.cli.moments import span, utc
from solocron.cli.opening import opened
from solocron.cli.rendering import nodes_table
from solocron.cli.scopes import circumstances
from solocron.model.documents.run import ENDED, Status

if TYPE_CHECKING:
    from solocron.views import RunView, ScopedPauseView, StatusView

__all__ = ["add_arguments", "execute"]


def execute(args: Namespace) -> int:
    with opened(args) as client:
        found = client.status()
        wrong = bool(
            any(one.counts for one in found.alarms)
            or found.overdue
            or found.unserved
            or any(run.stuck for run in found.running)
        )
        if args.json:
            output.dump_views(found)
            return FAILED if wrong else OK
        output.pairs(_glance(found), wrap=True)
        if found.alarms:
            print()
            output.table(["ALARM", "STATE", "OF", "SINCE (UTC)", "WHY"], grouped(found.alarms))
        if found.nodes:
            print()
            nodes_table(found.nodes)
        if found.running or found.offered:
            print()
            headers = ["RUN", " FOR", "NODE", "SINCE (UTC)", "DEADLINE (UTC)", "STATE"]
            output.table(headers, [_running_row(run, found.now) for run in (*found.running, *found.offered)])
    return FAILED if wrong else OK


def _running_row(run: RunView, now: datetime) -> Sequence[str]:
    since = run.started_at or run.claimed_at or run.slot
    state = run.reason or "running"
    if run.stopping_since is not None:
        state = f"{'stuck' if run.stuck else 'asked to stop'} since {utc(run.stopping_since)}: {run.stopping}"
    return run.run, span(max(now - since, timedelta())), run.node or "-", utc(since), utc(run.deadline), state


def _paused(pause: ScopedPauseView) -> str:
    told = circumstances(pause)
    asked = ", what was requested too" if pause.triggers else ""
    return f"{pause.scope}{asked} since {utc(pause.at)} {told}".rstrip() + f"; lift: {program()} resume {pause.option}"


def _no_node(pool: str, jobs: int) -> str:
    many = f"{jobs} jobs do" if jobs > 1 else "1 job does"
    flag = "" if pool == "default" else f" --pools {pool}"
    return in_its_words(f"pool {pool}: its {many} not run; start one: solocron run TARGET{flag}")


def _glance(found: StatusView) -> list[tuple[str, str]]:
    states = [node.state for node in found.nodes]
    alive = ", ".join(f"{states.count(state)} {state}" for state in ("live", "silent", "dead") if state in states)
    counts = ", ".join(f"{found.counts[name]} {name}" for name in Status if name in ENDED and found.counts.get(name))
    rows = [
        ("PAUSED", "\n".join(_paused(one) for one in found.pauses)),
        ("store", f"{found.store}, tier {found.tier}, namespace {found.namespace}"),
        ("time", f"{utc(found.now)} UTC by the store's clock"),
        ("nodes", alive or "none"),
        ("no node", "\n".join(_no_node(pool, jobs) for pool, jobs in found.unserved.items())),
        ("jobs", str(found.jobs)),
        ("paused", ", ".join(found.paused)),
        ("orphaned", ", ".join(found.orphaned)),
        ("blocked", ", ".join(found.blocked)),
        ("overdue", ", ".join(found.overdue)),
        ("running", str(len(found.running))),
        ("in queues", str(len(found.offered)) if found.offered else ""),
        ("stuck", ", ".join(run.run for run in found.running if run.stuck)),
        ("24 hours", counts or "nothing on record"),
    ]
    return [(label, text) for label, text in rows if text]
