"""Claim: decide what is due, and take at most one run. Finish and takeover end what was taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from solocron.clock import MILLISECOND
from solocron.model._fast.claim import ordinary
from solocron.model._fast.values import replace
from solocron.model.applications import is_anothers
from solocron.model.change import Absent, Change
from solocron.model.documents.job import GIVEN_WAY, Hold, Job, Missed, WaitingRange, WaitingRun
from solocron.model.documents.offer import Offer
from solocron.model.documents.run import Origin, Record, Status, group_of, run_id
from solocron.model.documents.scoped_pause import KeptBack, ScopedPause
from solocron.model.routing import ELSEWHERE, PREFER, fleet_of, moved, route
from solocron.model.timetable import Resolve, Timetable
from solocron.model.transitions.catchup import (
    SUPERSEDED,
    busy,
    decide,
    decided_up_to,
    did_not_run,
    leave_out,
    pass_over,
)
from solocron.model.transitions.claimant import Claimant, next_fence
from solocron.model.transitions.shards import SPREAD, cut, rest_of
from solocron.model.transitions.through_pauses import decide_through, pause_at
from solocron.model.transitions.untold import write_off_untold
from solocron.model.transitions.waiting_again import occupied_by

__all__ = [
    *("Later", "Needs", "catch_up_to", "claim", "due_at", "hold_of", "may_start", "overdue", "recompute_due", "wake"),
    "why_overdue",
]

_ASKED = (Origin.TRIGGER, Origin.RERUN)
"""Origins of runs that a person requested by name."""


@dataclass(frozen=True, slots=True)
class Later:
    """Answer of a claim that took nothing although something is due: other nodes go first, until an instant."""

    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Answer of a claim that needs the sessions, or a permit of this limit, to take a run."""

    sessions: bool = False
    limit: str | None = None


def claim(doc: Job | Absent, *, now: int, by: Claimant, resolve: Resolve) -> Change | None:
    """Decide every slot up to now and hold at most one run; the answer is the hold, `Needs`, `Later`, or None.

    None for a job of another application, because this node's function of that name is not the job's, and for a job
    whose carrier this node does not know.
    """
    if isinstance(doc, Absent) or is_anothers(doc.definition, by.application(doc.definition.handler)):
        return None
    if doc.definition.hand_over is not None and doc.definition.run_in not in by.carriers:
        return None
    slots = resolve(doc.definition.schedule)
    if not slots.known:
        return None
    return ordinary(doc, slots, now=now, by=by) or _claim(doc, slots, now=now, by=by, resolve=resolve)


def _claim(doc: Job, slots: Timetable, *, now: int, by: Claimant, resolve: Resolve) -> Change | None:
    """Claim with every policy considered; the slow path."""
    if doc.waiting_ranges and not all(resolve(s.schedule).known for s in doc.waiting_ranges if _under_calendar(s)):
        return None
    job, decided = catch_up_to(doc, slots, now=now, late_for=by.late_for, pauses=by.pauses)
    job, taken, given_up = _take(job, resolve, now=now, by=by)
    job = _noting_missed(job, given_up)
    job = recompute_due(job, slots)
    answer: Hold | Needs | Later | None = taken
    if taken is None and job.due_at is not None and job.due_at <= now:
        answer = Later(_look_again(job, slots, now=now, by=by))
    if job is doc and answer is None:
        return None
    return Change(job, (*decided, *given_up), answer)


def _under_calendar(waiting_range: WaitingRange) -> bool:
    return waiting_range.schedule is not None and "calendar" in waiting_range.schedule


def catch_up_to(
    job: Job, slots: Timetable, *, now: int, late_for: int, pauses: Sequence[ScopedPause]
) -> tuple[Job, tuple[Record, ...]]:
    """Decide every slot up to now, including a pause that has ended on its own.

    A removed job has no slots. A schedule that only a node with the code can compute is left to such a node.
    """
    if job.removed or not slots.known:
        return job, ()
    records: list[Record] = []
    if job.back is not None:
        job, untold = write_off_untold(job, slots, now=now)
        records.extend(untold)
    pause = job.paused
    if pause is not None and pause.until is not None and pause.until <= now:
        job = replace(wake(job, slots, records, until=pause.until, now=now), failures=0)
    if job.paused is not None or not job.definition.enabled:
        return job, tuple(records)
    if pauses:
        job, decided = decide_through(job, slots, pauses, now=now, decide=partial(decide, late_for=late_for))
    else:
        job, decided = decide(job, slots, now=now, late_for=late_for)
    return _noting_missed(job, decided), (*records, *decided)


def _noting_missed(job: Job, records: tuple[Record, ...]) -> Job:
    """Return the job with the newest slots that these records record as missed."""
    found = [record for record in records if record.status is Status.MISSED]
    if not found:
        return job
    newest = max(found, key=lambda record: record.slot)
    missed = Missed(
        at=newest.recorded_at,
        first=newest.slot if newest.first is None else newest.first,
        last=newest.slot,
        count=newest.count,
        superseded=newest.reason == SUPERSEDED,
    )
    return replace(job, missed=missed)


def wake(job: Job, slots: Timetable, records: list[Record], *, until: int, now: int, why: str | None = None) -> Job:
    """End a pause or a disabled period: the slots up to `until` are recorded as skipped."""
    if why is None:
        why = "disabled" if job.paused is None else "paused" + (f": {job.paused.note}" if job.paused.note else "")
    since = slots.decided_until(job.cursor, job.nominal)
    pass_over(job, slots, records, since, until, Status.SKIPPED, why, now=now)
    records.extend(leave_out(job, slots, since, until, now=now))
    return decided_up_to(replace(job, paused=None), slots, until)


def _take(job: Job, resolve: Resolve, *, now: int, by: Claimant) -> tuple[Job, Hold | Needs | None, tuple[Record, ...]]:
    """Hold the first run that may start now; runs that waited beyond start_within are recorded as missed instead."""
    records: list[Record] = []
    fleet: frozenset[str] = frozenset()
    if _asks_who_lives(job, now=now, by=by):
        if by.sessions is None:
            return job, Needs(sessions=True), ()
        fleet = fleet_of(job.definition, by.sessions, now=now) | {by.node}
        job, gone = moved(job, fleet)
        for part in gone:
            if not part.tried:
                records.append(did_not_run(job, part, Status.MISSED, f"its node {part.only} is gone", now=now))
    while True:
        waiting_run, rest = _first(job, resolve, now, by, fleet)
        if waiting_run is None:
            return job, None, tuple(records)
        if overdue(job, waiting_run, now=now):
            job = replace(job, **rest)
            records.append(did_not_run(job, waiting_run, Status.MISSED, why_overdue(waiting_run), now=now))
            continue
        if by.pauses and waiting_run.origin is Origin.SCHEDULE and not waiting_run.begun:
            # Decided by a client that had not heard of the pause.
            pause = pause_at(by.pauses, job, waiting_run.slot)
            if pause is not None:
                job = replace(job, **rest)
                records.append(did_not_run(job, waiting_run, Status.SKIPPED, pause.reason, now=now))
                continue
        if job.definition.limit is not None and by.permit is None:
            return job, Needs(limit=job.definition.limit), tuple(records)
        waiting_run, others = _parts(job, waiting_run, by, fleet)
        if others:
            rest = {**rest, "waiting_runs": (*rest.get("waiting_runs", job.waiting_runs), *others)}
        hold = hold_of(job, waiting_run, now=now, by=by)
        if job.definition.hand_over is not None:
            hold = replace(hold, deadline=None, offer=_next_offer(job, waiting_run, now=now, by=by))
        job = replace(job, **rest, active=(*job.active, hold), fence=hold.fence)
        return job, hold, tuple(records)


def overdue(job: Job, waiting_run: WaitingRun, *, now: int) -> bool:
    """Return whether a slot has waited beyond start_within, which counts up to the start of its body."""
    limit = job.definition.start_within
    if limit is None or waiting_run.origin is not Origin.SCHEDULE or waiting_run.started:
        return False
    return now > waiting_run.slot + limit


def why_overdue(waiting_run: WaitingRun) -> str:
    """Return the reason under which a slot is recorded that waited beyond start_within."""
    offer = waiting_run.offer
    if offer is None:
        return "waited longer than start_within"
    told = f"not picked up from {offer.carrier}"
    if offer.note is not None:
        told = f"{told}: {offer.note}," if offer.stands else offer.note
    return f"{told} within start_within"


def _next_offer(job: Job, waiting_run: WaitingRun, *, now: int, by: Claimant) -> Offer:
    """Return the hand-over that a claim begins; an offer that has lapsed keeps its time and its count."""
    carrier, before = job.definition.run_in, waiting_run.offer
    follows = by.carriers[carrier] and job.definition.target is None
    if before is None or before.carrier != carrier:
        return Offer(carrier=carrier, since=now, follows=follows)
    return replace(before.once_more(), follows=follows)


def hold_of(job: Job, waiting_run: WaitingRun, *, now: int, by: Claimant) -> Hold:
    """Return the hold of a waiting run that this node takes now, under a new fence."""
    timeout = job.definition.timeout
    return Hold(
        run=waiting_run.run,
        slot=waiting_run.slot,
        origin=waiting_run.origin,
        attempt=waiting_run.attempt,
        tries=waiting_run.tries,
        session=by.session,
        node=by.node,
        fence=next_fence(job.fence, now),
        claimed_at=now,
        deadline=None if timeout is None else now + timeout,
        request=waiting_run.request,
        payload=waiting_run.payload,
        crashed=waiting_run.crashed,
        shard=waiting_run.shard,
        shards=waiting_run.shards,
        only=waiting_run.only,
        among=waiting_run.among,
        asked_by=waiting_run.asked_by,
        note=waiting_run.note,
        trace=waiting_run.trace,
        permit=by.permit if job.definition.limit is not None else None,
    )


def _parts(
    job: Job, waiting_run: WaitingRun, by: Claimant, fleet: frozenset[str]
) -> tuple[WaitingRun, tuple[WaitingRun, ...]]:
    """Split an entry into what this node takes and what goes on waiting: shards, or the parts of other nodes."""
    definition = job.definition
    if definition.nodes is not None and waiting_run.shards is None and waiting_run.attempt == 1:
        mine, *others = route(waiting_run, definition.nodes, fleet, node=by.node)
        return mine, tuple(others)
    waiting_run = cut(waiting_run, definition.shards)
    following = rest_of(waiting_run)
    return waiting_run, () if following is None else (following,)


def _first(
    job: Job, resolve: Resolve, now: int, by: Claimant, fleet: frozenset[str] = frozenset()
) -> tuple[WaitingRun | None, Mapping[str, Any]]:
    """Return the next run, and the fields of the job without it: retries first, then by slot, then paced ranges."""
    waiting, waiting_ranges = may_start(job, by.kept_back(job, now))
    wait = _affinity_delay(job, by, fleet)
    ready = [
        waiting_run
        for waiting_run in waiting
        if waiting_run.ready_at + wait <= now and _turn(job, waiting_run, by, now) <= now
    ]
    best = min(ready, key=lambda waiting_run: (not waiting_run.begun, waiting_run.slot), default=None)
    if best is not None and best.begun:
        return best, _without(job, best)
    usual = [s for s in waiting_ranges if s.pace is None]
    spans = [s for s in usual if s.first + wait <= now and (best is None or s.first < best.slot)]
    if not spans and best is None:
        past = by.spare and not _live_is_ready(waiting, waiting_ranges, now)
        aside = [s for s in waiting_ranges if s.pace is not None and (past or s.origin is not Origin.BACKFILL)]
        spans = [s for s in aside if _ready_at(job, s) + wait <= now]
        spans = [s for s in spans if s.origin is Origin.SCHEDULE] or spans  # missed slots before requested ones
    if not spans:
        return (best, {} if best is None else _without(job, best))
    span = min(spans, key=lambda s: s.first)
    what: str | int = span.first if span.request is None else f"{span.first}|{span.request}"
    waiting_run = WaitingRun(
        run=run_id(job.name, job.incarnation, span.origin, what),
        slot=span.first,
        origin=span.origin,
        ready_at=span.first,
        request=span.request,
        asked_by=span.asked_by,
        note=span.note,
        trace=span.trace,
    )
    rest = tuple(s for s in job.waiting_ranges if s is not span)
    if span.first < span.last:
        following = resolve(span.schedule or job.definition.schedule).after(span.first)
        # The node that made the range may have had other zone data, so there may be no slot here by ours. Its last is
        # certainly one.
        following = span.last if following is None else min(following, span.last)
        rest = (replace(span, first=following, count=max(span.count - 1, 1)), *rest)
    return waiting_run, {"waiting_ranges": rest} | ({} if span.pace is None else {"paced": now})


def _live_is_ready(waiting: Sequence[WaitingRun], waiting_ranges: Sequence[WaitingRange], now: int) -> bool:
    """Return whether a live run may start on some node, even if another node goes first. The past comes after it."""
    return any(o.ready_at <= now and o.only is None for o in waiting) or any(
        s.pace is None and s.first <= now for s in waiting_ranges
    )


def _ready_at(job: Job, waiting_range: WaitingRange) -> int:
    """Return when its next run may start.

    All paced ranges of a job share one pace: two ranges are not twice as fast.
    """
    return (
        waiting_range.first if waiting_range.pace is None else max(waiting_range.first, job.paced + waiting_range.pace)
    )


def _asks_who_lives(job: Job, *, now: int, by: Claimant) -> bool:
    """Return whether what is due depends on the live nodes.

    That is so if it is for several nodes, for certain ones, or if another node goes first.
    """
    definition, last = job.definition, job.last
    if (
        definition.nodes is None
        and definition.prefer is None
        and not any(waiting_run.only for waiting_run in job.waiting_runs)
    ):
        return False
    waiting, waiting_ranges = may_start(job, by.kept_back(job, now))
    ready = [waiting_run for waiting_run in waiting if waiting_run.ready_at <= now]
    if any(waiting_run.only not in (None, by.node) for waiting_run in ready):
        return True
    due = any(waiting_run.only is None for waiting_run in ready) or any(
        _ready_at(job, s) <= now for s in waiting_ranges
    )
    other_first = definition.prefer == "last" and last is not None and last.node not in (None, by.node)
    return due and (definition.nodes is not None or other_first)


def _affinity_delay(job: Job, by: Claimant, fleet: frozenset[str]) -> int:
    """Return how long this node leaves what is due to the node that ran the job last, if that one lives."""
    last = job.last
    if job.definition.prefer != "last" or last is None or last.node in (None, by.node) or last.node not in fleet:
        return 0
    return PREFER


def _look_again(job: Job, slots: Timetable, *, now: int, by: Claimant) -> int:
    """Return when this node has something to do here, or should check whether another node has done its part."""
    waiting, waiting_ranges = may_start(job, by.kept_back(job, now))
    fleet = frozenset() if by.sessions is None else fleet_of(job.definition, by.sessions, now=now)
    wait = _affinity_delay(job, by, fleet)
    if not by.spare or _live_is_ready(waiting, waiting_ranges, now):
        waiting_ranges = [
            waiting_range for waiting_range in waiting_ranges if waiting_range.origin is not Origin.BACKFILL
        ]
    moments = [now + ELSEWHERE, *(_ready_at(job, waiting_range) + wait for waiting_range in waiting_ranges)]
    moments += [max(waiting_run.ready_at + wait, _turn(job, waiting_run, by, now)) for waiting_run in waiting]
    moments += [pause.until for pause in by.pauses if pause.until is not None and pause.until > now]
    if job.paused is None and job.definition.enabled and slots.known:
        following = slots.after(slots.decided_until(job.cursor, job.nominal))
        if following is not None:
            moments.append(following)
    return max(min(moments), now + MILLISECOND)


def _turn(job: Job, waiting_run: WaitingRun, by: Claimant, now: int) -> int:
    """Return from when on this node may take the run.

    A node that already has a shard of the slot lets the others take theirs first.
    """
    if waiting_run.only is not None:
        return waiting_run.ready_at if waiting_run.only == by.node else now + ELSEWHERE
    if by.alone or waiting_run.shards is None or waiting_run.tried:
        return waiting_run.ready_at
    group = group_of(waiting_run.run)
    mine = [hold.claimed_at for hold in job.active if hold.session == by.session and group_of(hold.run) == group]
    latest = max(mine, default=now)
    return (
        latest + SPREAD if mine and latest <= now else waiting_run.ready_at
    )  # If the store clock went backwards, latest > now: do not delay the claim.


def _without(job: Job, waiting_run: WaitingRun) -> Mapping[str, Any]:
    return {"waiting_runs": tuple(other for other in job.waiting_runs if other is not waiting_run)}


def may_start(job: Job, kept: KeptBack = KeptBack.NOTHING) -> tuple[list[WaitingRun], list[WaitingRange]]:
    """Return what may start once its time has come.

    A disabled job runs nothing. A pause stops everything but what a person requested by name. `kept` is what a pause of
    many jobs keeps back; `due_at` does not know it, so that nodes go on looking. Slots also wait for a run that waits
    for its retry: it counts as running. A shard may start beside the others of its slot. A run whose message is awaited
    occupies its place, and may be handed over once more when its time has come.
    """
    if not (job.waiting_runs or job.waiting_ranges) or not job.definition.enabled or job.removed:
        return [], []
    if kept is KeptBack.EVERYTHING:
        return [], []
    running = {group_of(one.run) for one in occupied_by(job)}
    full = len(running) >= job.definition.overlap.most
    if full and not any(one.shards is not None or one.offered for one in job.waiting_runs):
        return [], []
    retries = job.paused is None and kept is KeptBack.NOTHING
    slots = retries and not busy(job)
    waiting_runs = [
        o
        for o in job.waiting_runs
        if (o.origin in _ASKED or (retries if o.begun else slots)) and not (full and group_of(o.run) not in running)
    ]
    return waiting_runs, [
        s
        for s in job.waiting_ranges
        if (s.origin in _ASKED or slots)
        and not full
        and (s.origin is not Origin.BACKFILL or _has_room_for_the_past(job))
    ]


def _has_room_for_the_past(job: Job) -> bool:
    """Return whether a backfill may have one more run: half of what the job allows at once, its retries included."""
    begun = {group_of(hold.run) for hold in job.active if hold.origin is Origin.BACKFILL}
    begun |= {
        group_of(waiting_run.run)
        for waiting_run in job.waiting_runs
        if waiting_run.begun and waiting_run.origin is Origin.BACKFILL
    }
    return len(begun) < max(1, job.definition.overlap.most // 2)


def recompute_due(job: Job, slots: Timetable) -> Job:
    """Return the job with its `due_at` recomputed."""
    due = due_at(job, slots)
    return job if due == job.due_at else replace(job, due_at=due)


def due_at(job: Job, slots: Timetable) -> int | None:
    """Return the earliest instant at which anything must be decided; None if there is none."""
    moments: list[int] = []
    if job.removed:
        return None
    if job.back is not None:
        moments.append(job.back.cursor)
    if job.source == GIVEN_WAY and job.due_at is not None:
        moments.append(job.due_at)  # stays due until a node has written its definition
    if job.paused is not None:
        if job.paused.until is not None:
            moments.append(job.paused.until)
    elif job.definition.enabled:
        if not slots.known:
            return job.cursor  # only a node with the code can compute it: let the next one look
        following = slots.after(slots.decided_until(job.cursor, job.nominal))
        if following is not None:
            moments.append(following)
    waiting, waiting_ranges = may_start(job)
    moments += [waiting_run.ready_at for waiting_run in waiting]
    moments += [_ready_at(job, waiting_range) for waiting_range in waiting_ranges]
    return min(moments, default=None)
