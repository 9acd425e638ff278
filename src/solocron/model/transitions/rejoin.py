"""After the store went back: put the claims that a live node remembers into a job's document, and write off the rest.

A node remembers the claims that the store acknowledged to it and how their bodies ended. What the document lacks of
that was lost. Each run is brought to the further of both states: an attempt waits, is handed over if its job has a
carrier, is held, has ended, and a later attempt is further than an earlier one. Slots that the lost claims had passed,
and that no node reports, are recorded as lost by the first claim after the check.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from solocron.model._fast.values import replace
from solocron.model.change import Absent, Change
from solocron.model.documents.job import Back, Hold, Job, Told, WaitingRange, WaitingRun
from solocron.model.documents.run import Origin, Record, Status, group_of, run_id
from solocron.model.documents.scoped_pause import ScopedPause
from solocron.model.timetable import Resolve, Timetable
from solocron.model.transitions.catchup import did_not_run, give_up_range, leave_out, pass_over
from solocron.model.transitions.claimant import next_fence
from solocron.model.transitions.claiming import catch_up_to, recompute_due
from solocron.model.transitions.commands import answered, remember
from solocron.model.transitions.finishing import Outcome, end_hold, finish
from solocron.model.transitions.offering import is_followed
from solocron.model.transitions.shards import each, without
from solocron.model.transitions.through_pauses import decide_through
from solocron.model.transitions.untold import WENT_BACK, write_off_untold
from solocron.model.transitions.waiting_again import recall

__all__ = ["Remembered", "may_have_started", "rejoin", "write_off"]

_TAKEN = f"taken over before {WENT_BACK}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A claim that the store acknowledged to this process."""

    job: str
    incarnation: int
    hold: Hold
    cursor: int
    nominal: str | None
    outcome: Outcome | None = None
    """End of its body; None while it runs, or if this process has lost the session under which it ran."""


def rejoin(
    doc: Job | Absent,
    memories: Iterable[Remembered],
    *,
    epoch: str,
    session: str | None,
    now: int,
    resolve: Resolve,
) -> Change | None:
    """Bring the job to what this node remembers; None if the document lacks nothing of it.

    `session` is the node's present one: runs of its earlier sessions have stopped, and end as lost. A job that was
    removed or made anew is left alone. Repeating the call after a lost reply changes nothing.
    """
    if isinstance(doc, Absent) or doc.removed:
        return None
    slots = resolve(doc.definition.schedule)
    base = _base(doc, epoch)
    job: Job = doc
    records: list[Record] = []
    for memory in sorted(memories, key=lambda one: one.hold.fence):
        if memory.incarnation != doc.incarnation:
            continue
        known = memory.hold.fence <= base.fence and not _is_behind(job, memory.hold)
        if known or (_is_told(job, memory.hold) and not _is_only_handed(job, memory.hold)):
            job = _end_known(job, memory, records, now=now, resolve=resolve)
        else:
            job = _tell(job, base, memory, slots, records, session=session, now=now)
    if job is doc:
        return None
    return Change(recompute_due(job, slots), tuple(records), job.back is not None)


def _base(job: Job, epoch: str) -> Back:
    """Return the job as the store had it when it had gone back.

    If the store goes back again before the check is over, the state after the first time counts: since then some nodes
    have raised the fence by what they put back, and what others put back may be lost again.
    """
    back = job.back
    if back is None:
        return Back(epoch=epoch, fence=job.fence, cursor=job.cursor)
    return back if back.epoch == epoch else replace(back, epoch=epoch)


def _is_behind(job: Job, hold: Hold) -> bool:
    """Return whether an attempt that was claimed waits according to the document, or an earlier one is held.

    Then the claim was lost, whatever the fence. A node that has written off what was due has raised the fence; a hold
    is not written off, and of a run that waits only the next attempt is left. A hold that was asked to stop is never
    repeated: after `restored` that is each of them, and nothing is put back.
    """
    if any(one.run == hold.run and one.attempt < hold.attempt and one.cancel is None for one in job.active):
        return True
    for waiting_run in job.waiting_runs:
        uncut = waiting_run.shards is None and waiting_run.run == group_of(hold.run)
        if waiting_run.attempt <= hold.attempt and (uncut or any(one.run == hold.run for one in each(waiting_run))):
            return True
    return False


def _is_told(job: Job, hold: Hold) -> bool:
    told = () if job.back is None else job.back.told
    return any(one.run == hold.run and one.attempt == hold.attempt for one in told)


def _is_only_handed(job: Job, hold: Hold) -> bool:
    """Return whether the document has no more than the hand-over of an attempt that a worker picked up.

    Then the node that published the message has told of it first: the same attempt, and not as far.
    """
    if hold.handing:
        return False
    handed = [(one.run, one.attempt) for one in job.active if one.handing]
    for waiting_run in job.waiting_runs:
        handed.extend((one.run, one.attempt) for one in each(waiting_run) if one.offer is not None)
    return (hold.run, hold.attempt) in handed


def _end_known(job: Job, memory: Remembered, records: list[Record], *, now: int, resolve: Resolve) -> Job:
    """End a hold that the store still has although its body ended: only its end was lost."""
    hold = memory.hold
    if memory.outcome is None or job.hold(hold.run, hold.fence) is None:
        return job
    change = finish(job, run=hold.run, fence=hold.fence, outcome=memory.outcome, now=now, resolve=resolve)
    assert change is not None
    assert isinstance(change.doc, Job)
    records.extend(change.records)
    return change.doc


def _tell(
    job: Job, base: Back, memory: Remembered, slots: Timetable, records: list[Record], *, session: str | None, now: int
) -> Job:
    """Put in a claim that was lost, and its end if it has one."""
    hold, back = memory.hold, job.back if job.back is not None and job.back.epoch == base.epoch else base
    told = [one for one in back.told if one.run == hold.run]
    over = memory.outcome
    if over is None and hold.session != session:
        over = Outcome(status=Status.LOST, reason=f"its lease ended before {WENT_BACK}")
    further = any(one.attempt > hold.attempt for one in told) or any(
        o.attempt > hold.attempt for waiting_run in job.waiting_runs for o in each(waiting_run) if o.run == hold.run
    )
    fresh = _is_fresh(job, base, hold)
    job = _lift(job, memory, slots)
    if further:
        records.extend(_closed(job, hold, over or Outcome(status=Status.LOST, reason=_TAKEN), now=now))
    else:
        job = _take_out(job, hold, slots, records, now=now)
        if over is None:
            job = replace(job, active=(*job.active, hold))
        else:
            held = replace(job, active=(*job.active, hold))
            job, ended = end_hold(held, hold, over, now=now, accepted=(*held.accepted, hold.fence)[-256:])
            job = replace(job, waiting_runs=tuple(_waiting_since(one, hold) for one in job.waiting_runs))
            records.extend(ended)
            if over.status is Status.LOST:
                job = replace(job, fence=next_fence(job.fence, now))
    new = Told(run=hold.run, attempt=hold.attempt, slot=hold.slot, shards=hold.shards if fresh else None)
    job = replace(job, back=replace(back, told=(*back.told, new)))
    return _with_request(job, hold)


def _waiting_since(waiting_run: WaitingRun, hold: Hold) -> WaitingRun:
    """Return the next attempt of a run whose end was lost: another node may have made that attempt."""
    return (
        replace(waiting_run, ready_at=min(waiting_run.ready_at, hold.claimed_at))
        if waiting_run.run == hold.run
        else waiting_run
    )


def _lift(job: Job, memory: Remembered, slots: Timetable) -> Job:
    """Raise fence and cursor to what was granted and decided."""
    job = replace(job, fence=max(job.fence, memory.hold.fence))
    if memory.cursor <= slots.decided_until(job.cursor, job.nominal):
        return job
    return replace(job, cursor=max(memory.cursor, job.cursor), nominal=memory.nominal)


def _is_fresh(job: Job, base: Back, hold: Hold) -> bool:
    """Return whether lost claims had cut the slot into shards: then the document says nothing of the others."""
    if hold.shards is None:
        return False
    group = group_of(hold.run)
    if hold.origin is Origin.SCHEDULE and hold.slot > base.cursor:
        return True
    uncut = any(waiting_run.run == group and waiting_run.shards is None for waiting_run in job.waiting_runs)
    return uncut or any(_of_range(job, waiting_range, hold) for waiting_range in job.waiting_ranges)


def _take_out(job: Job, hold: Hold, slots: Timetable, records: list[Record], *, now: int) -> Job:
    """Return the job without what the document says of a run that was claimed since."""
    for older in job.active:
        # No body runs under a hold that hands over: the next hold is of the same attempt, and there is no record of it.
        passed_on = older.handing and older.fence < hold.fence
        if older.run == hold.run and (older.attempt < hold.attempt or passed_on):
            job, ended = end_hold(job, older, Outcome(status=Status.LOST, reason=_TAKEN), now=now)
            records.extend(ended)
    waiting_runs: list[WaitingRun] = []
    for one in job.waiting_runs:
        kept, _ = without(one, hold.run)
        waiting_runs.extend(kept if one.run != group_of(hold.run) or one.shards is not None else ())
    waiting_ranges: list[WaitingRange] = []
    for waiting_range in job.waiting_ranges:
        waiting_ranges.extend(
            _around(waiting_range, hold.slot, slots) if _of_range(job, waiting_range, hold) else (waiting_range,)
        )
    return replace(job, waiting_runs=tuple(waiting_runs), waiting_ranges=tuple(waiting_ranges))


def _of_range(job: Job, waiting_range: WaitingRange, hold: Hold) -> bool:
    if waiting_range.origin is not hold.origin or not waiting_range.first <= hold.slot <= waiting_range.last:
        return False
    what: str | int = hold.slot if waiting_range.request is None else f"{hold.slot}|{waiting_range.request}"
    return run_id(job.name, job.incarnation, waiting_range.origin, what) == group_of(hold.run)


def _around(waiting_range: WaitingRange, slot: int, slots: Timetable) -> Sequence[WaitingRange]:
    """Return a range without one of its slots."""
    parts = []
    before, after = slots.before(slot), slots.after(slot)
    if before is not None and before >= waiting_range.first:
        parts.append(replace(waiting_range, last=before, count=slots.count(waiting_range.first - 1, before)))
    if after is not None and after <= waiting_range.last:
        parts.append(replace(waiting_range, first=after, count=slots.count(after - 1, waiting_range.last)))
    return parts


def _with_request(job: Job, hold: Hold) -> Job:
    """Return the job with the request of a run remembered: repeated, it must not become a second run."""
    if hold.request is None or hold.origin is Origin.SCHEDULE:
        return job
    if hold.origin is Origin.TRIGGER:
        mark, answer = hold.request, group_of(hold.run)
    elif hold.origin is Origin.RERUN:
        mark, answer = f"rerun|{hold.slot}|{hold.request.partition('|')[2]}", group_of(hold.run)
    else:
        mark, answer = run_id(job.name, job.incarnation, Origin.BACKFILL, hold.request), "begun"
    return job if answered(job, mark) is not None else remember(job, mark, answer)


def _closed(job: Job, hold: Hold, outcome: Outcome, *, now: int) -> tuple[Record, ...]:
    """Return the record of an attempt that later attempts have superseded."""
    return end_hold(replace(job, active=(hold,)), hold, outcome, now=now)[1]


def may_have_started(job: Job, until: int) -> bool:
    """Return whether a process may have started something of the job by then that the store knows nothing of.

    That is what was due, what a worker may have picked up from a queue, and what waits behind a hold: the end of that
    hold may be lost, and such a job is due with its next slot only.
    """
    handed_over = any(map(is_followed, job.active)) or any(map(is_followed, job.waiting_runs))
    waits = any(one.ready_at <= until for one in job.waiting_runs) or bool(job.waiting_ranges)
    behind = waits and bool(job.active) and job.paused is None
    return handed_over or behind or (job.due_at is not None and job.due_at <= until)


def write_off(
    doc: Job | Absent,
    *,
    until: int,
    late_for: int,
    now: int,
    resolve: Resolve,
    pauses: Sequence[ScopedPause] = (),
) -> Change | None:
    """Write off what was due or waiting at `until`: a node that died during the check may have started it.

    It is recorded as lost. If retries after a crash are left, it waits as the next attempt instead. The same holds for
    every attempt that was handed over, be it that its node publishes, awaits the pick-up or is to publish again: its
    message is good all the while, and a worker that died may have picked it up.

    Several nodes may do so for one check, and each may repeat it after a lost reply: nothing is written off twice.
    """
    if isinstance(doc, Absent) or doc.removed or not may_have_started(doc, until):
        return None
    slots = resolve(doc.definition.schedule)
    if not slots.known:
        return None
    job, untold = write_off_untold(doc, slots, now=now)
    records = list(untold)
    policy = job.definition
    repeats = policy.retries > 0 and policy.on_crash == "retry"
    if policy.enabled and job.paused is None:
        if repeats:
            job, decided = catch_up_to(job, slots, now=until, late_for=late_for, pauses=pauses)
        else:
            job, decided = decide_through(job, slots, pauses, now=until, decide=partial(_lose, at=now))
        records.extend(decided)
    job = recall(job, is_followed, now=now)
    waiting_runs: list[WaitingRun] = []
    for one in job.waiting_runs:
        again = policy.on_crash == "retry" and one.tries < policy.retries
        if one.ready_at > until and not is_followed(one):
            waiting_runs.append(one)
        elif not again and not one.tried:
            records.extend(did_not_run(job, o, Status.LOST, WENT_BACK, now=now) for o in each(one))
        else:
            records.extend(_may_have_run(job, o, now=now) for o in each(one))
            if again:
                waiting_runs.extend(_next_attempt(o, until=until, now=now) for o in each(one))
    waiting_ranges = job.waiting_ranges
    if not repeats:
        records.extend(give_up_range(job, s, Status.LOST, WENT_BACK, now=now) for s in waiting_ranges)
        waiting_ranges = ()
    # A fence above every fence granted so far: a node that comes back later cannot put back what is written off.
    job = replace(
        job, waiting_runs=tuple(waiting_runs), waiting_ranges=waiting_ranges, fence=next_fence(job.fence, now)
    )
    return Change(recompute_due(job, slots), tuple(records), True)


def _lose(job: Job, slots: Timetable, *, now: int, at: int) -> tuple[Job, tuple[Record, ...]]:
    """Record every slot up to `now` as lost. `at` is the time of the records."""
    records: list[Record] = []
    since = slots.decided_until(job.cursor, job.nominal)
    last = slots.before(now + 1)
    if last is None or last <= since:
        return job, ()
    pass_over(job, slots, records, since, last, Status.LOST, WENT_BACK, now=at)
    records.extend(leave_out(job, slots, since, last, now=at))
    return replace(job, cursor=max(last, job.cursor), nominal=slots.nominal(last)), tuple(records)


def _next_attempt(waiting_run: WaitingRun, *, until: int, now: int) -> WaitingRun:
    """Return the attempt after one that is written off; it may start at once, as after a crash.

    The time of the attempt before must not stay. That of an offer is when it lapses, minutes ahead. Any other is not
    after `until`, so that the next node to write off would take this attempt for one that was due by then.
    """
    ready_at = max(now, until + 1, waiting_run.slot)
    attempt, tries = waiting_run.attempt + 1, waiting_run.tries + 1
    return replace(waiting_run, ready_at=ready_at, attempt=attempt, tries=tries, crashed=True, offer=None)


def _may_have_run(job: Job, waiting_run: WaitingRun, *, now: int) -> Record:
    """Record as lost an attempt that a node may have made and that the store knows nothing of."""
    record = did_not_run(job, waiting_run, Status.LOST, WENT_BACK, now=now)
    return replace(record, attempt=waiting_run.attempt)
