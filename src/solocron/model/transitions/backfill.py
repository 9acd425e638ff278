"""Runs that are requested again: one slot (rerun), or a range of the past (backfill). Both keep the slot and its key.

A backfill comes after everything else of its job. Its runs count for no slot's overlap; a slot that falls due while one
of them runs waits for its end. If a job allows several runs at once, a backfill takes at most half of the places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solocron.model._fast.values import replace
from solocron.model.change import Absent, Change
from solocron.model.documents.job import Hold, Job, WaitingRange, WaitingRun
from solocron.model.documents.run import Origin, Record, Status, group_of, plain, run_id
from solocron.model.policy import QUEUE_LIMIT
from solocron.model.refusals import Refusal, Refused
from solocron.model.timetable import Resolve
from solocron.model.transitions.catchup import did_not_run, give_up_range
from solocron.model.transitions.claiming import recompute_due
from solocron.model.transitions.commands import answered, remember
from solocron.model.transitions.waiting_again import recall

__all__ = [
    "AT_ONCE",
    "MOST",
    "BackfillOver",
    "backfill",
    "backfill_id",
    "cancel_backfill",
    "rerun",
    "rerun_id",
    "summary_of",
]

MOST = 100_000
"""Maximum number of slots of one backfill."""
AT_ONCE = 8
"""Maximum number of backfills of one job under way."""


def rerun_id(job: Job, slot: int, request: str) -> str:
    return run_id(job.name, job.incarnation, Origin.RERUN, f"{slot}|{request}")


def rerun(
    doc: Job | Absent,
    *,
    slot: int,
    reading: str,
    request: str,
    now: int,
    resolve: Resolve,
    by: str | None = None,
    note: str | None = None,
    trace: str | None = None,
) -> Change | None:
    """Run a slot once more; the answer is the run's id, or a `Refusal`. The same request again is the same run.

    `reading` is the local reading that is part of the slot's key, if it has one.
    """
    if isinstance(doc, Absent) or doc.removed:
        return None
    mark = f"rerun|{slot}|{request}"
    known = answered(doc, mark)
    if known is not None:
        return Change(doc, answer=known)
    if not doc.definition.enabled:
        return Change(doc, answer=Refusal(Refused.DISABLED))
    run = rerun_id(doc, slot, request)
    begun: list[Hold | WaitingRun] = [*doc.active, *doc.waiting_runs]
    if run in {group_of(one.run) for one in begun}:
        return Change(doc, answer=run)
    waits = any(s.first <= slot <= s.last for s in doc.waiting_ranges)
    if waits or any(one.slot == slot and one.origin is not Origin.TRIGGER for one in begun):
        return Change(doc, answer=Refusal(Refused.UNFINISHED))
    if doc.queued >= QUEUE_LIMIT:
        return Change(doc, answer=Refusal(Refused.QUEUE_FULL))
    waiting_run = WaitingRun(
        run=run,
        slot=slot,
        origin=Origin.RERUN,
        ready_at=now,
        request=f"{reading}|{request}",
        asked_by=plain(by),
        note=plain(note),
        trace=trace,
    )
    job = remember(replace(doc, waiting_runs=(*doc.waiting_runs, waiting_run)), mark, run)
    return Change(recompute_due(job, resolve(job.definition.schedule)), answer=run)


def backfill_id(job: Job, request: str) -> str:
    return run_id(job.name, job.incarnation, Origin.BACKFILL, request)


def backfill(
    doc: Job | Absent,
    *,
    start: int,
    end: int,
    limit: int | None,
    pace: int | None,
    request: str,
    now: int,
    resolve: Resolve,
    by: str | None = None,
    note: str | None = None,
    trace: str | None = None,
    spans: Sequence[tuple[int, int]] | None = None,
) -> Change | None:
    """Run every slot of the schedule from `start` to before `end` again, the newest `limit` of them.

    Only slots that have been decided: the schedule itself brings those that are still to come. With `spans`, only the
    slots within these, and `limit` has been considered. The answer is the range, with several spans their summary; or a
    `Refusal`.
    """
    if isinstance(doc, Absent) or doc.removed:
        return None
    name = backfill_id(doc, request)
    under_way = [s for s in doc.waiting_ranges if s.origin is Origin.BACKFILL and s.request == request]
    if under_way:
        return Change(doc, answer=summary_of(under_way))
    known = answered(doc, name)
    if known is not None:
        return Change(doc, answer=_over(known, request))
    if not doc.definition.enabled:
        return Change(doc, answer=Refusal(Refused.DISABLED))
    slots = resolve(doc.definition.schedule)
    if not slots.known:
        return Change(doc, answer=Refusal(Refused.UNKNOWN_SCHEDULE))
    until = min(end - 1, slots.decided_until(doc.cursor, doc.nominal))
    if spans is None:
        since = start - 1 if limit is None else slots.newest(start - 1, max(until, start - 1), limit)
        spans = [(since + 1, until)]
    found = [(since - 1, min(last, until)) for since, last in spans]
    counts = [slots.count(*one) for one in found]
    count = sum(counts)
    if not count:
        return Change(doc, answer=Refusal(Refused.NO_SLOTS))
    if count > MOST:
        return Change(doc, answer=Refusal(Refused.TOO_MANY_SLOTS, count))
    if len({s.request for s in doc.waiting_ranges if s.origin is Origin.BACKFILL}) >= AT_ONCE:
        return Change(doc, answer=Refusal(Refused.TOO_MANY_BACKFILLS))
    ranges = [
        WaitingRange(
            first=_there(slots.after(since)), last=_there(slots.before(last + 1)), count=some, origin=Origin.BACKFILL,
            request=request, pace=pace or 0, total=count, asked_by=plain(by), note=plain(note), trace=trace,
        )
        for (since, last), some in zip(found, counts, strict=True)
        if some
    ]  # fmt: skip
    whole = summary_of(ranges)
    begun = f"{whole.first} {whole.last} {count}"
    job = remember(replace(doc, waiting_ranges=(*doc.waiting_ranges, *ranges)), name, begun)
    return Change(recompute_due(job, slots), answer=whole)


def summary_of(ranges: Sequence[WaitingRange]) -> WaitingRange:
    """Return what waits of one backfill as one range, however many pieces it is in."""
    first, last = min(s.first for s in ranges), max(s.last for s in ranges)
    return replace(ranges[0], first=first, last=last, count=sum(s.count for s in ranges))


def _there(slot: int | None) -> int:
    assert slot is not None, "a range with a count has a first and a last slot"
    return slot


@dataclass(frozen=True, slots=True)
class BackfillOver:
    """Answer to a request whose backfill has begun before, and of which nothing waits any more."""

    waiting_range: WaitingRange


def _over(known: str, request: str) -> BackfillOver | Refusal:
    """Return the backfill that is remembered for a request; one that a node has put back remembers no range."""
    words = known.split(" ")
    if len(words) != 3:
        return Refusal(Refused.BACKFILL_OVER)
    first, last, total = map(int, words)
    return BackfillOver(
        WaitingRange(first=first, last=last, count=0, origin=Origin.BACKFILL, request=request, total=total)
    )


def cancel_backfill(doc: Job | Absent, *, run: str, reason: str, now: int, resolve: Resolve) -> Change | None:
    """Stop a backfill by its id: waiting slots are recorded as cancelled, running ones are asked to stop."""
    if isinstance(doc, Absent):
        return None
    gone = [s for s in doc.waiting_ranges if s.origin is Origin.BACKFILL and backfill_id(doc, s.request or "") == run]
    if not gone:
        return None
    records: list[Record] = [give_up_range(doc, s, Status.CANCELLED, reason, now=now) for s in gone]
    requests = {s.request for s in gone}
    doc = recall(doc, lambda hold: hold.origin is Origin.BACKFILL and hold.request in requests, now=now)
    offered = [o for o in doc.waiting_runs if o.origin is Origin.BACKFILL and o.request in requests and o.offer]
    records.extend(did_not_run(doc, one, Status.CANCELLED, reason, now=now) for one in offered if not one.tried)
    job = replace(
        doc,
        waiting_ranges=tuple(s for s in doc.waiting_ranges if s not in gone),
        waiting_runs=tuple(
            o
            for o in doc.waiting_runs
            if o not in offered and not (o.origin is Origin.BACKFILL and o.request in requests and o.tried)
        ),
        active=tuple(
            hold.asked_to_stop(reason, now=now) if hold.origin is Origin.BACKFILL and hold.request in requests else hold
            for hold in doc.active
        ),
    )
    return Change(recompute_due(job, resolve(job.definition.schedule)), tuple(records), "cancelled")
