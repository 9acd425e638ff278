"""Tables and descriptions that several commands print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from solocron.cli import output
from solocron.cli.moments import local, span, utc
from solocron.cli.scopes import circumstances
from solocron.model.documents.run import Status

if TYPE_CHECKING:
    from solocron.model.documents.run import Shards
    from solocron.views import JobView, NodeView, RunView

__all__ = ["describe_job", "describe_run", "job_state", "nodes_table", "runs_table", "runs_table_in_pages"]


_RUNS = ["RUN", "STATUS", "SLOT (UTC)", " TRY", " LATE", " TOOK", "NODE", "WHY"]


def runs_table(found: Iterable[RunView]) -> None:
    """Print runs, and slots that did not run with the reason."""
    runs_table_in_pages([found])


def runs_table_in_pages(pages: Iterable[Iterable[RunView]]) -> None:
    """Print runs as `runs_table` does, each page when it comes."""
    output.table_in_parts(_RUNS, ([_run_row(run) for run in page] for page in pages))


def _run_row(run: RunView) -> Sequence[str]:
    late = _between(run.slot, run.started_at or run.claimed_at)
    took = _between(run.started_at, run.finished_at)
    why = (run.error or "").strip().rpartition("\n")[2] or run.reason or ""
    if run.asked_by or run.note:
        asked = ": ".join(filter(None, [f"asked by {run.asked_by}" if run.asked_by else "", run.note]))
        why = f"{why} ({asked})" if why else asked
    if run.count > 1:
        why = f"{run.count} slots from {utc(run.first)}: {why}"
    attempt = str(run.attempt) if run.attempt else "-"
    return run.run, run.status, utc(run.slot), attempt, late, took, run.node or "-", why


def _between(start: datetime | None, end: datetime | None) -> str:
    """Format the time between two instants; below 0, as the clock is estimated, it is shown as 0."""
    return "-" if start is None or end is None else span(max(end - start, timedelta()))


def job_state(job: JobView) -> tuple[str, str]:
    """Return what a person on call needs to know first about a job: its state in a word, and what belongs to it."""
    if not job.enabled:
        return "disabled", ""
    if job.paused is not None:
        return "paused", circumstances(job.paused)
    if job.pauses:
        return "paused", "; ".join(f"with {one.scope} {circumstances(one)}".rstrip() for one in job.pauses)
    if job.running:
        return "running", f"on {', '.join(sorted({str(run.node) for run in job.running}))}"
    if job.next is None and job.ends is not None and not job.waiting:
        return "ended", f"on {job.ends}"
    if job.orphaned:
        return "orphaned", ""
    return (f"{job.waiting} waiting" if job.waiting else "on"), ""


def describe_job(job: JobView) -> list[tuple[str, str]]:
    """Return one job as labels and values; unknown values are left out."""
    state, note = job_state(job)
    last = f"{job.last_status}, slot {utc(job.last_slot)} UTC" if job.last_status else ""
    added = ": ".join(filter(None, [f"by {job.defined_by}" if job.defined_by else "", job.defined_note]))
    resumed = ": ".join(filter(None, [f"by {job.resumed_by}" if job.resumed_by else "", job.resumed_note]))
    rows = [
        ("job", job.name),
        ("state", state),
        ("note", note),
        ("schedule", f"{job.schedule} ({job.zone})"),
        ("next", local(job.next) if job.next is not None else ""),
        ("last", last),
        ("error", (job.last_error or "").rstrip()),
        ("failures", f"{job.failures} in a row" if job.failures else ""),
        ("waiting", str(job.waiting) if job.waiting else ""),
        ("pool", job.pool),
        ("shards", _shards(job.shards)),
        ("handler", job.handler),
        ("place", job.place or ""),
        ("owner", job.owner or ""),
        ("runbook", job.runbook or ""),
        ("tags", ", ".join(job.tags)),
        ("resumed", ", ".join(filter(None, [f"{utc(job.resumed_at)} UTC", resumed])) if job.resumed_at else ""),
        ("added", added),
        ("defined", f"{utc(job.defined_at)} UTC" if job.defined_at else ""),
    ]
    return [(label, value) for label, value in rows if value]


def describe_run(run: RunView, *, now: datetime | None = None) -> list[tuple[str, str]]:
    """Return one run as labels and values; unknown values are left out."""
    since = (run.started_at or run.claimed_at) if run.status == Status.RUNNING else None
    slots = f"{run.count} slots, {utc(run.first)} to {utc(run.slot)} UTC" if run.count > 1 else f"{utc(run.slot)} UTC"
    told = run.progress or {}
    progress = f"{told.get('done')} of {told.get('total')}" if told.get("total") else str(told.get("done", ""))
    rows = [
        ("run", run.run),
        ("job", run.job),
        ("slot", slots),
        ("shard", run.shard or ""),
        ("origin", run.origin),
        ("asked by", run.asked_by or ""),
        ("note", run.note or ""),
        ("status", run.status),
        ("reason", run.reason or ""),
        ("attempt", str(run.attempt) if run.attempt else ""),
        ("node", run.node or ""),
        ("fence", str(run.fence) if run.fence else ""),
        ("key", run.key),
        ("claimed", f"{utc(run.claimed_at)} UTC" if run.claimed_at else ""),
        ("started", f"{utc(run.started_at)} UTC, {_between(run.slot, run.started_at)} late" if run.started_at else ""),
        ("running", f"for {_between(since, now)}" if now and since else ""),
        ("deadline", f"{utc(run.deadline)} UTC" if run.deadline else ""),
        ("asked", f"to stop at {utc(run.stopping_since)} UTC: {run.stopping}" if run.stopping_since else ""),
        ("stuck", _stuck(run)),
        ("finished", f"{utc(run.finished_at)} UTC" if run.finished_at else ""),
        ("took", _between(run.started_at, run.finished_at) if run.started_at and run.finished_at else ""),
        ("progress", f"{progress} {told.get('note') or ''}".strip()),
        ("result", "" if run.result is None else json.dumps(run.result, ensure_ascii=False)),
        ("error", (run.error or "").rstrip()),
        ("output", (run.output or "").rstrip()),
    ]
    return [(label, value) for label, value in rows if value]


def _shards(shards: Shards | None) -> str:
    """Return the shards as `trigger --shard` takes them."""
    if shards is None:
        return ""
    return f"0 to {shards - 1}" if isinstance(shards, int) else ", ".join(shards)


def _stuck(run: RunView) -> str:
    if not run.stuck:
        return ""
    remedy = f'restart {run.node}, or declare on_stuck="abandon"'
    return f"its body does not stop, and {run.job} waits for it: {remedy}"


def nodes_table(found: Iterable[NodeView], *, ended: bool = False) -> None:
    """Print nodes; with `ended`, also when each of them ended."""
    headers = [
        *("NODE", "STATE", "POOLS", " RUNNING", "STARTED (UTC)"),
        *(["ENDED (UTC)"] if ended else []),
        *("LEASE UNTIL (UTC)", "VERSION", "ZONE DATA", "WHY"),
    ]
    output.table(headers, [_node_row(node, ended) for node in found])


def _node_row(node: NodeView, ended: bool) -> Sequence[str]:
    return (
        node.node,
        node.state,
        ",".join(node.pools),
        str(node.running) if node.max_running is None else f"{node.running} of {node.max_running}",
        utc(node.started_at),
        *([utc(node.ended_at)] if ended else []),
        utc(node.expires_at if node.ended_at is None else None),
        node.version or "-",
        node.zone_data or "-",
        node.reason or "",
    )
