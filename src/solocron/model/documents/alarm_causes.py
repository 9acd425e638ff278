"""The causes of alarms, as the documents give them: a pure function of jobs, sessions and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from solocron.clock import SECOND, iso
from solocron.model.applications import can_run, rivals
from solocron.model.documents.alarm import Bounds, Cause
from solocron.model.documents.alarm_text import some
from solocron.model.documents.job import Job, Missed
from solocron.model.documents.offer import Offer
from solocron.model.documents.scoped_pause import KeptBack, ScopedPause, kept_back
from solocron.model.documents.session import Session, is_live

__all__ = ["causes"]

_REMEMBERED = 600 * SECOND
"""Minimum time for which a miss stays an alarm, even if the job runs again at once."""


def causes(
    jobs: Iterable[Job],
    sessions: Sequence[Session],
    *,
    aside: frozenset[str],
    tier: str,
    bounds: Bounds,
    now: int,
    pauses: Sequence[ScopedPause] = (),
) -> dict[str, Cause]:
    """Return every cause that these documents give, by the alarm's name."""
    live = [session for session in sessions if is_live(session, now=now)]
    pools = {pool for session in live for pool in session.pools}
    found: dict[str, Cause] = {}
    unserved: dict[str, list[str]] = {}
    if bounds.tier is not None and tier > bounds.tier:
        told = f"tier {tier}, {bounds.tier} was demanded"
        found["tier:store"] = Cause(kind="tier", subject="store", detail=told)
    for job in jobs:
        definition = job.definition
        paused = job.paused is not None or kept_back(pauses, job, now=now) is not KeptBack.NOTHING
        wanted = definition.enabled and not job.removed and not paused
        if wanted and definition.pool not in pools:
            unserved.setdefault(definition.pool, []).append(job.name)
        for cause in _of(job, live, pools, aside=aside, bounds=bounds, now=now, wanted=wanted):
            found.setdefault(cause.name, replace(cause, owner=definition.owner, runbook=definition.runbook))
    for pool, names in unserved.items():
        told = f"no live node serves this pool, which has {some('job', len(names), names)}"
        cause = Cause(kind="no node", subject=pool, detail=told, patience=bounds.patience)
        found[cause.name] = cause
    return found


def _of(
    job: Job,
    live: Sequence[Session],
    pools: set[str],
    *,
    aside: frozenset[str],
    bounds: Bounds,
    now: int,
    wanted: bool,
) -> Iterator[Cause]:
    """Yield the causes that one job gives; one that no person wants to run gives none but a stuck run."""
    leases = {session.name: session.lease for session in live}
    for hold in job.active:
        lease = leases.get(hold.session)
        if lease is not None and hold.deadline is not None and now > hold.deadline + lease:
            told = f"{hold.run} runs on {hold.node}, past its deadline of {iso(hold.deadline)}"
            yield Cause(kind="stuck", subject=job.name, detail=told)
    if not wanted:
        return
    if job.name in aside:
        yield Cause(kind="set aside", subject=job.name, detail="its document fails on its own; see `solocron doctor`")
    if job.failures >= bounds.failing:
        what = "" if job.last is None or not job.last.error else f": {job.last.error.strip().rpartition(chr(10))[2]}"
        many = f"{job.failures} runs in a row" if job.failures > 1 else "its last run"
        yield Cause(kind="failing", subject=job.name, detail=f"{many} ended badly{what}")
    if (missed := _missed(job, bounds, now)) is not None:
        info = missed.superseded and not bounds.missed_latest
        yield Cause(kind="missed", subject=job.name, detail=_lost(missed), ended=missed.last, info=info)
    for application, nodes in rivals(job.definition, live).items():
        told = f"it belongs to {job.definition.application}, and {nodes[0]} has its handler from {application}"
        yield Cause(kind="two applications", subject=job.name, detail=told, patience=bounds.patience)
    pool = job.definition.pool
    if pool not in pools:
        return  # one alarm for all jobs of the pool
    if not any(can_run(session, job.definition) for session in live):
        told = f"no live node of pool {pool} has its handler {job.definition.handler}"
        yield Cause(kind="orphaned", subject=job.name, detail=told, patience=bounds.patience)
    elif job.due_at is not None and now - job.due_at > bounds.late and job.name not in aside:
        told = f"due since {iso(job.due_at)}, and no node claimed it"
        yield Cause(kind="late", subject=job.name, detail=told)
    elif (offer := _oldest_offer(job)) is not None and now - offer.since > bounds.late:
        yield Cause(kind="late", subject=job.name, detail=_not_picked_up(offer))


def _oldest_offer(job: Job) -> Offer | None:
    """Return the hand-over that has waited longest. A job is due anew each time that one lapses."""
    found = [hold.offer for hold in job.active if hold.offer is not None]
    found += [one.offer for one in job.waiting_runs if one.offer is not None]
    return min(found, key=lambda offer: offer.since, default=None)


def _not_picked_up(offer: Offer) -> str:
    if offer.note is not None and not offer.stands:
        return f"{offer.note}, since {iso(offer.since)}"
    why = "" if offer.note is None else f": {offer.note}"
    return f"waits in {offer.carrier} since {iso(offer.since)}, and no worker picked it up{why}"


def _missed(job: Job, bounds: Bounds, now: int) -> Missed | None:
    """Return a miss until the job has run again, and for `_REMEMBERED` in any case.

    A job that catches up a moment later has still missed its slots, and what settles must last until it is told.
    """
    missed = job.missed
    if missed is None:
        return None
    ran_since = job.last is not None and job.last.finished_at > missed.at
    return None if ran_since and now - missed.at >= max(_REMEMBERED, 2 * bounds.settle) else missed


def _lost(missed: Missed) -> str:
    instead = "; a later slot ran instead" if missed.superseded else ""
    if missed.count == 1:
        return f"the slot of {iso(missed.last)}{instead}"
    return f"{missed.count} slots, {iso(missed.first)} to {iso(missed.last)}{instead}"
