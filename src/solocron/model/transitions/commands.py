"""Commands of people and programs on a job: trigger, cancel, pause, resume. A repeated request is recognised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from solocron.model.change import Absent, Change
from solocron.model.documents.job import Job, Pause, Request, Resume, WaitingRun
from solocron.model.documents.run import Origin, Record, Status, group_of, plain, run_id
from solocron.model.documents.scoped_pause import ScopedPause
from solocron.model.policy import QUEUE_LIMIT
from solocron.model.refusals import Refusal, Refused
from solocron.model.timetable import Resolve
from solocron.model.transitions.catchup import did_not_run
from solocron.model.transitions.claiming import catch_up_to, recompute_due, wake
from solocron.model.transitions.shards import labels, without
from solocron.model.transitions.waiting_again import recall

__all__ = [
    "REMEMBERED",
    "Preview",
    "answered",
    "cancel",
    "pause",
    "preview_resume",
    "reason_of",
    "remember",
    "resume",
    "trigger",
]

REMEMBERED = 32
"""Number of requests that a job remembers."""


def trigger(
    doc: Job | Absent,
    *,
    request: str,
    payload: Any,
    at: int | None,
    now: int,
    resolve: Resolve,
    shard: int | str | None = None,
    by: str | None = None,
    note: str | None = None,
    trace: str | None = None,
) -> Change | None:
    """Add one run, now or at an instant; the answer is its id, or a `Refusal`. The same request again is the same run.

    For a sharded job that is a run for each shard, or for the named one, and the answer is their common id.
    """
    if isinstance(doc, Absent) or doc.removed:
        return None
    known = answered(doc, request)
    if known is not None:
        return Change(doc, answer=known)
    if not doc.definition.enabled:
        return Change(doc, answer=Refusal(Refused.DISABLED))
    if shard is not None:
        known_as = labels(doc.definition.shards or ())
        if str(shard) not in map(str, known_as):
            return Change(doc, answer=Refusal(Refused.NO_SHARD))
        shard = next(label for label in known_as if str(label) == str(shard))
    if doc.queued >= QUEUE_LIMIT:
        return Change(doc, answer=Refusal(Refused.QUEUE_FULL))
    run = run_id(doc.name, doc.incarnation, Origin.TRIGGER, request)
    if run in {group_of(hold.run) for hold in doc.active} | {
        group_of(waiting_run.run) for waiting_run in doc.waiting_runs
    }:
        return Change(doc, answer=run)  # the request is forgotten, but its run still waits or runs
    slot = now if at is None else max(at, now)
    waiting_run = WaitingRun(
        run=run if shard is None else f"{run}#0",
        slot=slot,
        origin=Origin.TRIGGER,
        ready_at=slot,
        request=request,
        payload=payload,
        shard=shard,
        asked_by=plain(by),
        note=plain(note),
        trace=trace,
    )
    job = remember(replace(doc, waiting_runs=(*doc.waiting_runs, waiting_run)), request, run)
    return Change(recompute_due(job, resolve(job.definition.schedule)), answer=run)


def cancel(doc: Job | Absent, *, run: str, reason: str, now: int, resolve: Resolve) -> Change | None:
    """Stop a run, or all shards of a slot.

    Holders are asked to stop and end it. What only waits, in a carrier's queue too, is recorded as cancelled; a message
    of it that arrives later is dropped.
    """
    if isinstance(doc, Absent):
        return None
    doc = recall(doc, lambda hold: run in (hold.run, group_of(hold.run)), now=now)
    asked = [hold for hold in doc.active if run in (hold.run, group_of(hold.run))]
    holds = tuple(hold.asked_to_stop(reason, now=now) if hold in asked else hold for hold in doc.active)
    kept: list[WaitingRun] = []
    gone: list[WaitingRun] = []
    for waiting_run in doc.waiting_runs:
        left, out = without(waiting_run, run)
        kept += left
        gone += out
    if not asked and not gone:
        return None
    answer = "asked" if asked else "cancelled"
    if not gone:
        return Change(doc if holds == doc.active else replace(doc, active=holds), answer=answer)
    job = replace(doc, active=holds, waiting_runs=tuple(kept))
    # An earlier attempt is recorded and stays the final record of its run.
    records = tuple(did_not_run(doc, one, Status.CANCELLED, reason, now=now) for one in gone if not one.tried)
    return Change(recompute_due(job, resolve(job.definition.schedule)), records, answer)


def pause(
    doc: Job | Absent,
    *,
    by: str | None,
    note: str | None,
    until: int | None,
    now: int,
    late_for: int,
    resolve: Resolve,
    pauses: Sequence[ScopedPause] = (),
) -> Change | None:
    """Start nothing more by schedule. Slots that were due before are decided first."""
    if isinstance(doc, Absent) or doc.removed:
        return None
    slots = resolve(doc.definition.schedule)
    job, records = catch_up_to(doc, slots, now=now, late_for=late_for, pauses=pauses)
    was = job.paused
    since = was.at if was is not None else now
    job = replace(job, paused=Pause(at=since, by=plain(by), note=plain(note), until=until))
    return Change(recompute_due(job, slots), records, "paused")


def resume(
    doc: Job | Absent, *, now: int, resolve: Resolve, by: str | None = None, note: str | None = None
) -> Change | None:
    """Continue from now: the slots of the pause are recorded as skipped, and failures are counted anew.

    The job keeps who resumed it, and why; the records of the skipped slots say so too.
    """
    if isinstance(doc, Absent) or doc.removed:
        return None
    if doc.paused is None:
        return Change(doc, answer="was not paused")
    until = now if doc.paused.until is None else min(now, doc.paused.until)
    slots = resolve(doc.definition.schedule)
    records: list[Record] = []
    if slots.known:
        job = replace(wake(doc, slots, records, until=until, now=now), failures=0)
        if by is not None or note is not None:
            told = f"resumed{_author(by, note)}"
            records = [replace(record, reason=f"{record.reason}; {told}") for record in records]
    else:  # only a node with the code can compute what was skipped: it ends the pause
        job = replace(doc, paused=replace(doc.paused, until=until))
    job = replace(job, resumed=Resume(at=now, by=plain(by), note=plain(note)))
    return Change(recompute_due(job, slots), tuple(records), "resumed")


def reason_of(what: str, by: str | None, note: str | None) -> str:
    """Return a reason with its author and note, as far as they are known: "cancelled by ana: wrong file"."""
    return f"{what}{_author(by, note)}"


def _author(by: str | None, note: str | None) -> str:
    return str(plain((f" by {by}" if by else "") + (f": {note}" if note else "")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The effect of a resume now: slots of the pause to skip, slots since then to record as missed, and waiting runs.

    `first` and `last` are the first and the last slot that do not run.
    """

    skipped: int
    missed: int
    waiting: int
    first: int | None
    last: int | None
    job: Job


def preview_resume(
    doc: Job, *, now: int, late_for: int, resolve: Resolve, pauses: Sequence[ScopedPause] = ()
) -> Preview:
    """Return the effect of a resume and of the next decision of a node, without writing anything."""
    change = resume(doc, now=now, resolve=resolve)
    assert change is not None
    assert isinstance(change.doc, Job)
    slots = resolve(doc.definition.schedule)
    job, decided = catch_up_to(change.doc, slots, now=now, late_for=late_for, pauses=pauses)
    records = (*change.records, *decided)
    return Preview(
        skipped=sum(record.count for record in records if record.status is Status.SKIPPED),
        missed=sum(record.count for record in records if record.status is Status.MISSED),
        waiting=job.waiting,
        first=min((record.slot if record.first is None else record.first for record in records), default=None),
        last=max((record.slot for record in records), default=None),
        job=job,
    )


def answered(job: Job, request: str) -> str | None:
    for known in job.requests:
        if known.id == request:
            return known.answer
    return None


def remember(job: Job, request: str, answer: str) -> Job:
    """Return the job with this request remembered."""
    return replace(job, requests=(*job.requests, Request(id=request, answer=answer))[-REMEMBERED:])
