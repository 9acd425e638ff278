"""Lines about the jobs: orphaned, overdue, set aside, held by a dead session, stuck past their deadline."""

from __future__ import annotations

from collections.abc import Iterator

from solocron.clock import SECOND
from solocron.doctor.line import fail, listed, ok, seconds, warn
from solocron.doctor.sight import Sight
from solocron.errors import InvalidError
from solocron.jobs.registry import Registry
from solocron.model.applications import rivals
from solocron.model.documents.request import job_named
from solocron.model.documents.session import Life
from solocron.model.transitions.claimant import stuck_since
from solocron.stores.contract import Check

__all__ = ["applications", "blocked", "orphaned", "overdue", "requests", "revisions", "stuck_holds", "unreadable"]

_LATE = 25 * SECOND
"""The default lease and two beats: a job still due after that is overdue."""

_LYING = 60 * SECOND
"""Twice as long as a node ever sleeps."""


def orphaned(sight: Sight) -> Iterator[Check]:
    """Report jobs that no live node can run; without any live node `nodes` says so once, not each job."""
    lost = [job for job in sight.jobs if not job.removed and not sight.can_run(job)] if sight.live else []
    wanted = [job.name for job in lost if job.definition.enabled and not sight.is_paused(job)]
    idle = [job.name for job in lost if job.name not in wanted]
    if wanted:
        yield fail(
            "orphaned jobs",
            f"{listed(wanted)}: no live node of their pool has their handler",
            f"run a node that declares them, or: solocron remove {wanted[0]}",
        )
    if idle:
        told = f"{listed(idle)}, paused or disabled: no live node has their handler"
        yield warn("orphaned jobs", told, f"solocron remove {idle[0]}")
    if not lost:
        yield ok("orphaned jobs", "none" if sight.live else "no node to ask")


def applications(sight: Sight) -> Iterator[Check]:
    """Report handlers that two applications have: only the function of the job's own application runs."""
    found = [
        (job, application, nodes)
        for job in sight.jobs
        if not job.removed
        for application, nodes in rivals(job.definition, sight.live).items()
    ]
    for job, application, nodes in found[:20]:
        yield fail(
            "applications",
            f"{job.name} belongs to {job.definition.application}, and {application} on {listed(nodes)} has a function "
            "of the same name, which does not run",
            f"give one of the jobs another name, or {application} a namespace of its own (SOLOCRON_NAMESPACE)",
        )
    if not found:
        yield ok("applications", "each job is declared by one")


def revisions(sight: Sight) -> Iterator[Check]:
    """Report stored definitions newer than every live node: they are kept after a rollback."""
    behind: dict[tuple[int, int], list[str]] = {}
    for job in sight.jobs:
        live = max((session.revision or 0 for session in sight.can_run(job)), default=None)
        if job.revision is not None and not job.removed and live is not None and live < job.revision:
            behind.setdefault((job.revision, live), []).append(job.name)
    for (stored, live), names in sorted(behind.items()):
        yield warn(
            "revisions",
            f"{listed(names)}: the stored definition (revision {stored}) is kept; where the live nodes ({live}) "
            "declare another one, that is not used",
            f"deploy revision {stored} or a higher one; or, to use what the live nodes declare: solocron adopt --all",
        )
    if not behind:
        yield ok("revisions", "no stored definition is ahead of the live nodes")


def overdue(sight: Sight) -> Iterator[Check]:
    """Report jobs that are due, could run, and are not claimed."""
    aside = {one.name for one in sight.blocked}
    late = [
        (sight.now - job.due_at, job.name)
        for job in sight.jobs
        if job.due_at is not None
        and sight.now - job.due_at > _LATE
        and sight.can_run(job)
        and job.name not in aside
        and not sight.is_paused(job)
    ]
    if late:
        worst, names = max(late)[0], [name for _, name in sorted(late, reverse=True)]
        yield warn(
            "overdue jobs",
            f"{listed(names)}: due for up to {seconds(worst)} and not claimed",
            "start more nodes or raise --max-running; look at the nodes' logs",
        )
    else:
        yield ok("overdue jobs", "none")


def unreadable(sight: Sight) -> Iterator[Check]:
    """Report schedules that this release, or its zone data, cannot read; their jobs cannot run here."""
    found = []
    for job in sight.jobs:
        try:
            Registry().resolve(job.definition.schedule)
        except InvalidError as error:
            found.append((job.name, str(error)))
    for name, why in found[:5]:
        yield fail("schedules", f"{name}: {why}", "pip install -U solocron tzdata, or declare the job again")
    if not found:
        yield ok("schedules", f"all {len(sight.jobs)} can be read")


def requests(sight: Sight) -> Iterator[Check]:
    """Report triggers of committed transactions; a node accepts them within seconds."""
    if not sight.requests:
        yield ok("requests", "none waits")
        return
    count = f"{len(sight.requests)} triggers" if len(sight.requests) > 1 else "1 trigger"
    waited = sight.now - min(int(request.body["asked"][0]) for request in sight.requests)
    told = f"{count} of committed transactions not accepted, the oldest made {seconds(max(waited, 0))} ago"
    if waited > _LYING:
        jobs = sorted({job_named(request) for request in sight.requests})
        yield warn("requests", f"{told} ({listed(jobs)})", "start a node; if one runs, see `set aside` and its log")
    else:
        yield ok("requests", told)


def blocked(sight: Sight) -> Iterator[Check]:
    """Report documents that are set aside because they fail on their own."""
    for one in sight.blocked[:20]:
        left = seconds(max(one.until - sight.now, 0))
        yield fail(
            "set aside",
            f"{one.kind} {one.name} fails on its own ({one.times} times, left out for {left}): {one.reason}",
            "correct or remove it; solocron doctor --repair lets it take part again",
        )
    if not sight.blocked:
        yield ok("set aside", "nothing")


def stuck_holds(sight: Sight) -> Iterator[Check]:
    """Report holds that neither a body nor a session will end: they block their jobs forever."""
    found = [*_without_session(sight), *_stuck(sight)]
    yield from found[:20]
    if not found:
        yield ok("holds", f"{len(sight.holds)}, each of a live session")


def _without_session(sight: Sight) -> Iterator[Check]:
    sessions = {session.name: session for session in sight.sessions}
    named = {hold.session for _, hold in sight.holds}
    for job, hold in sight.holds:
        session = sessions.get(hold.session)
        if session is None or session.state is Life.SWEPT:
            told = f"{hold.run} is held by {hold.node}, whose session does not exist any more"
            yield fail("holds", told, "solocron doctor --repair")
        elif session.state is Life.DEAD:
            told = f"{hold.run} is held by {hold.node}, which is dead"
            if sight.now - (session.ended_at or 0) > session.lease or not sight.live:
                yield fail("holds", f"{told}; no node has taken it over", "solocron doctor --repair")
            else:
                yield warn("holds", f"{told}; a live node takes it over now", f"solocron runs {job.name}")
    for name in sight.unknown:
        if name not in named:  # a hold of another kind of document, or of one that cannot be decoded
            yield fail("holds", f"session {name} holds something and does not exist", "solocron doctor --repair")


def _stuck(sight: Sight) -> Iterator[Check]:
    leases = {session.name: session.lease for session in sight.live}
    for job, hold in sight.holds:
        lease = leases.get(hold.session)
        since = None if lease is None else stuck_since(hold, lease=lease, now=sight.now)
        if since is None:
            continue
        late = seconds(sight.now - since)
        told = f"{hold.run} runs on {hold.node}, " + (
            f"{late} past its deadline" if since == hold.deadline else f"asked to stop {late} ago ({hold.cancel})"
        )
        yield fail(
            "holds",
            f"{told}: its body does not stop when told to, and {job.name} waits for it",
            f'restart {hold.node}; on_stuck="abandon" lets go of such bodies',
        )
