"""Decides slots: each slot up to the new cursor either waits, or is recorded as not run with the reason.

A slot is *late* until `late_for` after its instant and then still waits, overlap permitting. After that it is *missed*
and `catch_up` decides. A long outage costs a few records, computed in closed form.
"""

from __future__ import annotations

from solocron.model._fast.values import replace
from solocron.model.documents.job import Job, WaitingRange, WaitingRun
from solocron.model.documents.run import Origin, Record, Status, group_of, key_of, run_id
from solocron.model.policy import QUEUE_LIMIT
from solocron.model.timetable import Timetable
from solocron.model.transitions.claimant import patience_of
from solocron.model.transitions.shards import each
from solocron.model.transitions.waiting_again import occupied_by, recall

__all__ = [
    "SUPERSEDED",
    "add_waiting",
    "busy",
    "decide",
    "decided_up_to",
    "did_not_run",
    "give_up",
    "give_up_range",
    "leave_out",
    "pass_over",
]

SUPERSEDED = "no node ran it in time; a later slot ran instead (catch_up=latest)"
"""Reason of missed slots for which a later one runs."""


def decide(job: Job, slots: Timetable, *, now: int, late_for: int) -> tuple[Job, tuple[Record, ...]]:
    """Decide every slot up to now. The caller guarantees that the job is neither paused nor disabled."""
    decided, records = _decide(job, slots, now=now, late_for=late_for)
    if decided.cursor != job.cursor:
        records = (*records, *leave_out(job, slots, job.cursor, decided.cursor, now=now))
    return decided, records


def leave_out(job: Job, slots: Timetable, since: int, until: int, *, now: int) -> tuple[Record, ...]:
    """Record the slots that a calendar left out in (since, until]: one record, however many they are."""
    found = slots.left_out(since, until) if until > since else None
    if found is None:
        return ()
    count, first, last, why = found
    return (_summary(job, first, last, count, Status.SKIPPED, why, now),)


def _decide(job: Job, slots: Timetable, *, now: int, late_for: int) -> tuple[Job, tuple[Record, ...]]:
    cursor = slots.decided_until(job.cursor, job.nominal)
    first = slots.after(cursor)
    if first is None or first > now:
        return job, ()
    records: list[Record] = []
    late_from = max(now - patience_of(job.definition, late_for), cursor)
    last = slots.before(now + 1)
    assert last is not None, "first <= now is a slot, so there is a last one"
    job = _missed(job, slots, records, cursor, late_from, now)
    job = _late(job, slots, records, late_from, now)
    return decided_up_to(job, slots, last), tuple(records)


def _missed(job: Job, slots: Timetable, records: list[Record], since: int, until: int, now: int) -> Job:
    """Decide the slots in (since, until], which are too late to be merely late."""
    count = slots.count(since, until)
    if not count:
        return job
    policy, keep, pace = job.definition.catch_up, until, job.definition.catch_up.pace
    if policy.kind == "latest":
        keep = (slots.before(until + 1) or until) - 1
        reason = SUPERSEDED
    elif policy.kind == "all":
        keep = since if policy.within is None else max(since, now - policy.within - 1)
        if policy.limit is not None:
            keep = slots.newest(keep, until, policy.limit)
        reason = "no node ran it in time; beyond the bounds of catch-up"
    else:
        reason = "no node ran it in time (catch_up=skip)"
    start_within = job.definition.start_within
    if start_within is not None and now - start_within - 1 >= keep:
        keep = min(now - start_within - 1, until)
        reason = "no node ran it within start_within"
    pass_over(job, slots, records, since, keep, Status.MISSED, reason, now=now)
    return add_waiting(job, slots, keep, until, pace=pace)


def _late(job: Job, slots: Timetable, records: list[Record], since: int, until: int) -> Job:
    """Decide the slots in (since, until]: they wait, unless an earlier run still runs and `overlap` says otherwise."""
    count = slots.count(since, until)
    if not count:
        return job
    overlap = job.definition.overlap
    if overlap.kind == "replace":
        return _replace(job, slots, records, since, until)
    behind = not busy(job) and _behind_backfill(job)
    if not busy(job) and not behind and not _in_line(job):
        return add_waiting(job, slots, since, until)
    # Behind a backfill one slot waits under every policy: a live slot is never skipped for the sake of the past.
    kind = "queue" if behind and overlap.kind in ("skip", "allow") else overlap.kind
    if kind == "queue-all":
        room = max(0, QUEUE_LIMIT - job.queued)
        cut = until if count <= room else _after_n(slots, since, room)
        job = add_waiting(job, slots, since, cut)
        pass_over(job, slots, records, cut, until, Status.DROPPED, f"{QUEUE_LIMIT} runs are waiting", now=until)
        return job
    queued = any(s.pace is None for s in job.waiting_ranges) or any(
        not waiting_run.begun and waiting_run.ready_at <= until for waiting_run in job.waiting_runs
    )
    if kind == "queue" and not queued:
        first = slots.after(since)
        assert first is not None
        job = add_waiting(job, slots, since, first)
        since = first
    what = "one run is waiting already" if kind == "queue" else _what_runs(job)
    pass_over(job, slots, records, since, until, Status.SKIPPED, f"overlap: {what}", now=until)
    return job


def _replace(job: Job, slots: Timetable, records: list[Record], since: int, until: int) -> Job:
    """Let the newest slot wait; everything before it is stopped, or never starts."""
    newest = slots.before(until + 1)
    assert newest is not None
    reason = "overlap: replaced by a later slot"
    pass_over(job, slots, records, since, newest - 1, Status.SKIPPED, reason, now=until)
    job = recall(job, lambda hold: hold.origin is not Origin.BACKFILL, now=until)
    job = give_up(job, records, Status.SKIPPED, reason, now=until, among=frozenset({Origin.SCHEDULE}))
    job = _give_up_offers(job, records, reason, now=until)
    stopped = (h if h.origin is Origin.BACKFILL else h.asked_to_stop(reason, now=until) for h in job.active)
    job = replace(job, active=tuple(stopped))
    return add_waiting(job, slots, newest - 1, newest)


def _give_up_offers(job: Job, records: list[Record], reason: str, *, now: int) -> Job:
    """End the requested runs that were handed over, as running ones are stopped: their messages find nothing."""
    gone = [one for one in job.waiting_runs if one.offer is not None and one.origin is not Origin.BACKFILL]
    records.extend(did_not_run(job, one, Status.CANCELLED, reason, now=now) for one in gone if not one.tried)
    return replace(job, waiting_runs=tuple(one for one in job.waiting_runs if one not in gone)) if gone else job


def busy(job: Job) -> bool:
    """Return whether a further run would overlap: as many run as may, including a run that waits for its retry.

    The shards of one slot count as one run, from the first that is claimed to the last that ends. Runs of a backfill do
    not count: slots go first.
    """
    past = Origin.BACKFILL
    begun = {group_of(hold.run) for hold in job.active if hold.origin is not past}
    begun |= {
        group_of(waiting_run.run)
        for waiting_run in job.waiting_runs
        if waiting_run.begun and waiting_run.origin is not past
    }
    return len(begun) >= job.definition.overlap.most


def _behind_backfill(job: Job) -> bool:
    """Return whether a slot has to wait only because a backfill runs."""
    return len({group_of(one.run) for one in occupied_by(job)}) >= job.definition.overlap.most


def _in_line(job: Job) -> bool:
    """Return whether as many slots as may run wait for a permit of the job's limit.

    One more would only make the queue longer.
    """
    if job.definition.limit is None:
        return False
    waiting = sum(
        1 for waiting_run in job.waiting_runs if waiting_run.origin is Origin.SCHEDULE and not waiting_run.begun
    )
    waiting += sum(
        waiting_range.count
        for waiting_range in job.waiting_ranges
        if waiting_range.origin is Origin.SCHEDULE and not waiting_range.pace
    )
    return waiting >= job.definition.overlap.most


def add_waiting(job: Job, slots: Timetable, since: int, until: int, *, pace: int | None = None) -> Job:
    """Return the job with the scheduled slots in (since, until] waiting: one by name, neighbours as a range.

    `pace` applies to the range.
    """
    if since < job.cursor:
        job, since = _add_waiting_by_reading(job, slots, since, min(until, job.cursor))
    count = slots.count(since, until)
    if not count:
        return job
    first, last = slots.after(since), slots.before(until + 1)
    assert first is not None
    assert last is not None
    tail = job.waiting_ranges[-1] if job.waiting_ranges else None
    same = tail and (tail.origin, tail.schedule, tail.pace) == (Origin.SCHEDULE, None, pace)
    if tail and same and slots.after(tail.last) == first:
        longer = replace(tail, last=last, count=tail.count + count)
        return replace(job, waiting_ranges=(*job.waiting_ranges[:-1], longer))
    for waiting_run in job.waiting_runs if pace is None else ():
        plain = (
            waiting_run.origin is Origin.SCHEDULE
            and waiting_run.attempt == 1
            and waiting_run.request is None
            and not waiting_run.begun
        )
        if plain and slots.after(waiting_run.slot) == first:
            rest = tuple(other for other in job.waiting_runs if other is not waiting_run)
            waiting_range = WaitingRange(first=waiting_run.slot, last=last, count=count + 1)
            return replace(job, waiting_runs=rest, waiting_ranges=(*job.waiting_ranges, waiting_range))
    if count == 1 and pace is None:
        return replace(job, waiting_runs=(*job.waiting_runs, _waiting_slot(job, first)))
    return replace(
        job, waiting_ranges=(*job.waiting_ranges, WaitingRange(first=first, last=last, count=count, pace=pace))
    )


def _waiting_slot(job: Job, slot: int) -> WaitingRun:
    run = run_id(job.name, job.incarnation, Origin.SCHEDULE, slot)
    return WaitingRun(run=run, slot=slot, origin=Origin.SCHEDULE, ready_at=slot)


def _add_waiting_by_reading(job: Job, slots: Timetable, since: int, until: int) -> tuple[Job, int]:
    """Add slots whose instants lie behind the cursor and whose local readings, by this node's zone data, do not.

    A node with other zone data has used these instants for other readings, so the names carry the reading as well.
    """
    more: list[WaitingRun] = []
    while (slot := slots.after(since)) is not None and slot <= until:
        since, reading = slot, slots.nominal(slot)
        run = run_id(job.name, job.incarnation, Origin.SCHEDULE, f"{slot}|{reading}")
        more.append(WaitingRun(run=run, slot=slot, origin=Origin.SCHEDULE, ready_at=slot, request=reading))
    return replace(job, waiting_runs=(*job.waiting_runs, *more)), until


def pass_over(
    job: Job,
    slots: Timetable,
    records: list[Record],
    since: int,
    until: int,
    status: Status,
    reason: str,
    *,
    now: int,
) -> None:
    """Record that the slots in (since, until] did not run: one record, however many they are."""
    count = slots.count(since, until)
    if not count:
        return
    first, last = slots.after(since), slots.before(until + 1)
    assert first is not None
    assert last is not None
    reading = slots.nominal(last) if first <= job.cursor else None  # as in _add_waiting_by_reading
    records.append(_summary(job, first, last, count, status, reason, now, request=reading))


def give_up(
    job: Job,
    records: list[Record],
    status: Status,
    reason: str,
    *,
    now: int,
    among: frozenset[Origin] = frozenset(Origin),
) -> Job:
    """Return the job with nothing of these origins waiting.

    A run that never started gets a record with the reason; a retry has the record of its last attempt already.
    """
    for waiting_run in job.waiting_runs:
        if waiting_run.origin in among and not waiting_run.tried:
            records.extend(did_not_run(job, one, status, reason, now=now) for one in each(waiting_run))
    for s in job.waiting_ranges:
        if s.origin in among:
            records.append(give_up_range(job, s, status, reason, now=now))
    return replace(
        job,
        waiting_runs=tuple(waiting_run for waiting_run in job.waiting_runs if waiting_run.origin not in among),
        waiting_ranges=tuple(s for s in job.waiting_ranges if s.origin not in among),
    )


def give_up_range(job: Job, waiting_range: WaitingRange, status: Status, reason: str, *, now: int) -> Record:
    """Record that the rest of a range will not run."""
    s = waiting_range
    record = _summary(job, s.first, s.last, s.count, status, reason, now, s.origin, s.request)
    return replace(record, asked_by=s.asked_by, note=s.note)


def decided_up_to(job: Job, slots: Timetable, instant: int) -> Job:
    """Return the job with its cursor and local reading at an instant. Neither ever goes back."""
    if instant <= slots.decided_until(job.cursor, job.nominal):
        return job
    return replace(job, cursor=max(instant, job.cursor), nominal=slots.nominal(instant))


def _summary(
    job: Job,
    first: int,
    last: int,
    count: int,
    status: Status,
    reason: str,
    now: int,
    origin: Origin = Origin.SCHEDULE,
    request: str | None = None,
) -> Record:
    what = last if count == 1 else f"{first}-{last}"
    return Record(
        run=run_id(job.name, job.incarnation, origin, what if request is None else f"{what}|{request}"),
        job=job.name,
        attempt=0,
        slot=last,
        first=first,
        count=count,
        origin=origin,
        status=status,
        reason=reason,
        key=key_of(job.name, origin, last, request),
        recorded_at=now,
        finished_at=now,
    )


def did_not_run(job: Job, waiting_run: WaitingRun, status: Status, reason: str, *, now: int) -> Record:
    """Record that a waiting run will not run."""
    return Record(
        run=waiting_run.run,
        job=job.name,
        attempt=0,
        slot=waiting_run.slot,
        first=waiting_run.slot,
        origin=waiting_run.origin,
        status=status,
        reason=reason,
        key=key_of(job.name, waiting_run.origin, waiting_run.slot, waiting_run.request, waiting_run.shard),
        recorded_at=now,
        finished_at=now,
        asked_by=waiting_run.asked_by,
        note=waiting_run.note,
    )


def _after_n(slots: Timetable, since: int, n: int) -> int:
    """Return the n-th slot after `since`; `since` itself for n = 0."""
    for _ in range(n):
        since = slots.after(since) or since
    return since


def _what_runs(job: Job) -> str:
    if job.active:
        hold = job.active[0]
        return f"{hold.run} still runs on {hold.node}" if len(job.active) == 1 else f"{len(job.active)} runs still run"
    offer = next((one.offer for one in job.waiting_runs if one.offer is not None), None)
    if offer is not None:
        return f"an earlier run waits in {offer.carrier}"
    if any(waiting_run.begun for waiting_run in job.waiting_runs):
        return "an earlier run waits for its next attempt"
    return f"an earlier slot waits for a permit of {job.definition.limit}"
