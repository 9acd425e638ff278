"""Looks at a namespace: jobs, runs, nodes, the whole at a glance. Changes nothing."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterable, Sequence
from datetime import datetime
from difflib import get_close_matches

from solocron.cli import output
from solocron.cli.exits import FAILED
from solocron.cli.moments import local, span, utc
from solocron.cli.opening import each_namespace, opened
from solocron.clock import from_us
from solocron.effects.steps import StepView, steps_of
from solocron.errors import InvalidError
from solocron.model.documents.run import Status
from solocron.views import JobView, LimitView, NodeView, RunView, StatusView, to_json

__all__ = ["describe_run", "jobs", "limits", "namespaces", "nodes", "runs", "runs_table", "show", "status"]


def jobs(args: Namespace) -> int:
    with opened(args) as client:
        found = client.jobs()
        if args.json:
            return output.dump(to_json(found))
        if not found:
            output.note(f"no jobs in namespace {client.store.namespace!r} of {client.store.url}")
            return 0
        output.table(["JOB", "SCHEDULE", "NEXT", "LAST", "STATE"], [_job_row(job) for job in found])
    return 0


def _job_row(job: JobView) -> Sequence[str]:
    following = local(job.next) if job.next is not None else "-"
    return job.name, job.schedule, following, job.last_status or "-", _state(job)


def _state(job: JobView) -> str:
    """The one thing about it that a person at night wants to know first."""
    if not job.enabled:
        return "disabled"
    if job.paused is not None:
        by = f" by {job.paused.by}" if job.paused.by else ""
        until = f" until {utc(job.paused.until)}" if job.paused.until else ""
        return f"paused{by}{until}" + (f": {job.paused.note}" if job.paused.note else "")
    if job.running:
        return f"running on {', '.join(sorted({hold.node for hold in job.running}))}"
    if job.orphaned:
        return "orphaned"
    return f"{job.waiting} waiting" if job.waiting else "on"


def runs(args: Namespace) -> int:
    wanted = _statuses(args.status or ())
    with opened(args) as client:
        found = client.runs(args.job, status=wanted, limit=args.limit)
        if args.json:
            return output.dump(to_json(found))
        if not found:
            output.note("no runs on record" + (f" of {args.job}" if args.job else ""))
            return 0
        runs_table(found)
    return 0


def _statuses(given: Iterable[str]) -> list[str]:
    known = [str(status) for status in Status]
    for one in given:
        if one not in known:
            close = get_close_matches(one, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(known)}."
            raise InvalidError(f"--status: {one!r:.40} is not known; {hint}")
    return list(given)


def runs_table(found: Iterable[RunView]) -> None:
    """Runs as a table; slots that did not run are in it, with the reason."""
    headers = ["RUN", "SLOT (UTC)", " TRY", "STATUS", "NODE", " LATE", " TOOK", "WHY"]
    output.table(headers, [_run_row(run) for run in found])


def _run_row(run: RunView) -> Sequence[str]:
    late = _between(run.slot, run.started_at or run.claimed_at)
    took = _between(run.started_at, run.finished_at)
    why = (run.error or "").strip().rpartition("\n")[2] or run.reason or ""
    if run.count > 1:
        why = f"{run.count} slots from {utc(run.first)}: {why}"
    attempt = str(run.attempt) if run.attempt else "-"
    return run.run, utc(run.slot), attempt, run.status, run.node or "-", late, took, why


def _between(start: datetime | None, end: datetime | None) -> str:
    return "-" if start is None or end is None else span(end - start)


def show(args: Namespace) -> int:
    with opened(args) as client:
        run = client.get_run(args.run)
        attempts = client.attempts(args.run)
        steps = steps_of(client.store, args.run)
        if args.json:
            return output.dump(to_json(run) | {"attempts": to_json(attempts), "steps": to_json(steps)})
        output.pairs(describe_run(run, now=from_us(client.store.clock())))
        if len(attempts) > 1 or (attempts and attempts[-1].attempt != run.attempt):
            print()
            runs_table(attempts)
        if steps:
            print()
            output.table(["STEP", "FINISHED (UTC)", "RESULT"], [_step_row(step) for step in steps])
    return 0


def _step_row(step: StepView) -> Sequence[str]:
    text = json.dumps(step.value, ensure_ascii=False)
    return step.name, utc(step.at), text if len(text) <= 60 else text[:57] + "..."


def describe_run(run: RunView, *, now: datetime | None = None) -> list[tuple[str, str]]:
    """One run, label by label; what is not known is left out."""
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
        ("status", run.status),
        ("reason", run.reason or ""),
        ("attempt", str(run.attempt) if run.attempt else ""),
        ("node", run.node or ""),
        ("fence", str(run.fence) if run.fence else ""),
        ("key", run.key),
        ("claimed", f"{utc(run.claimed_at)} UTC" if run.claimed_at else ""),
        ("started", f"{utc(run.started_at)} UTC, {_between(run.slot, run.started_at)} late" if run.started_at else ""),
        ("running", f"for {span(now - since)}" if now and since else ""),
        ("deadline", f"{utc(run.deadline)} UTC" if run.deadline else ""),
        ("asked", f"to stop at {utc(run.stopping_since)} UTC: {run.stopping}" if run.stopping_since else ""),
        ("stuck", _stuck(run)),
        ("finished", f"{utc(run.finished_at)} UTC" if run.finished_at else ""),
        ("took", _between(run.started_at, run.finished_at) if run.started_at and run.finished_at else ""),
        ("progress", f"{progress} {told.get('note') or ''}".strip()),
        ("result", "" if run.result is None else str(run.result)),
        ("error", (run.error or "").rstrip()),
        ("output", (run.output or "").rstrip()),
    ]
    return [(label, text) for label, text in rows if text]


def _stuck(run: RunView) -> str:
    if not run.stuck:
        return ""
    remedy = f'restart {run.node}, or declare on_stuck="abandon"'
    return f"its body does not stop, and {run.job} waits for it: {remedy}"


def nodes(args: Namespace) -> int:
    with opened(args) as client:
        found = client.nodes()
        if args.json:
            return output.dump(to_json(found))
        if not found:
            output.note(f"no nodes in namespace {client.store.namespace!r} of {client.store.url}")
            return 0
        _nodes_table(found)
    return 0


def limits(args: Namespace) -> int:
    with opened(args) as client:
        found = client.limits()
        if args.json:
            return output.dump(to_json(found))
        if not found:
            output.note(f"no job of namespace {client.store.namespace!r} names a limit")
            return 0
        output.table(["LIMIT", " MOST", " TAKEN", " WAITING", "JOBS", "BY"], [_limit_row(limit) for limit in found])
    return 0


def _limit_row(limit: LimitView) -> Sequence[str]:
    by = ", ".join(f"{one.run or 'nothing yet'} on {one.node}" for one in limit.taken)
    return limit.name, str(limit.most), str(len(limit.taken)), str(limit.waiting), ", ".join(limit.jobs), by


def _nodes_table(found: Iterable[NodeView]) -> None:
    headers = [
        "NODE",
        "STATE",
        "POOLS",
        " RUNNING",
        "VERSION",
        "ZONE DATA",
        "STARTED (UTC)",
        "LEASE UNTIL (UTC)",
        "WHY",
    ]
    output.table(headers, [_node_row(node) for node in found])


def _node_row(node: NodeView) -> Sequence[str]:
    return (
        node.node,
        node.state,
        ",".join(node.pools),
        str(node.running),
        node.version or "-",
        node.zone_data or "-",
        utc(node.started_at),
        utc(node.expires_at),
        node.reason or "",
    )


def namespaces(args: Namespace) -> int:
    """How many jobs and live nodes each one has; `--namespace` is of no interest here."""
    found = []
    for client in each_namespace(args):
        live = [node for node in client.nodes() if node.state == "live" and node.pools]
        found.append({"namespace": client.store.namespace, "jobs": len(client.jobs()), "nodes": len(live)})
    if args.json:
        return output.dump(found)
    if not found:
        output.note("no namespace holds anything yet")
        return 0
    output.table(["NAMESPACE", " JOBS", " NODES"], [[str(value) for value in one.values()] for one in found])
    return 0


def status(args: Namespace) -> int:
    with opened(args) as client:
        found = client.status()
        wrong = bool(found.alarms or found.overdue or found.unserved or any(run.stuck for run in found.running))
        if args.json:
            output.dump(to_json(found))
            return FAILED if wrong else 0
        output.pairs(_glance(found))
        if found.alarms:
            print()
            rows = [(alarm.kind, alarm.subject, utc(alarm.since), alarm.detail) for alarm in found.alarms]
            output.table(["ALARM", "OF", "SINCE (UTC)", "WHY"], rows)
        if found.nodes:
            print()
            _nodes_table(found.nodes)
        if found.running:
            print()
            headers = ["RUN", "NODE", "SINCE (UTC)", " FOR", "DEADLINE (UTC)", "STATE"]
            output.table(headers, [_running_row(run, found.now) for run in found.running])
    return FAILED if wrong else 0


def _running_row(run: RunView, now: datetime) -> Sequence[str]:
    since = run.started_at or run.claimed_at or run.slot
    state = "running"
    if run.stopping_since is not None:
        state = f"{'stuck' if run.stuck else 'asked to stop'} since {utc(run.stopping_since)}: {run.stopping}"
    return run.run, run.node or "-", utc(since), span(now - since), utc(run.deadline), state


def _no_node(pool: str, jobs: int) -> str:
    many = f"{jobs} jobs do" if jobs > 1 else "1 job does"
    flag = "" if pool == "default" else f" --pools {pool}"
    return f"pool {pool}: its {many} not run; start one: solocron run TARGET{flag}"


def _glance(found: StatusView) -> list[tuple[str, str]]:
    states = [node.state for node in found.nodes]
    alive = ", ".join(f"{states.count(state)} {state}" for state in ("live", "silent", "dead") if state in states)
    counts = ", ".join(f"{found.counts[name]} {name}" for name in Status if found.counts.get(name))
    rows = [
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
        ("stuck", ", ".join(run.run for run in found.running if run.stuck)),
        ("24 hours", counts or "nothing on record"),
    ]
    return [(label, text) for label, text in rows if text]
