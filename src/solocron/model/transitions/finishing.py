"""The ends of an attempt: finished by its holder, handed back, or taken from a session that died."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from solocron.model._fast.values import build, fast_init, replace
from solocron.model.change import Absent, Change
from solocron.model.documents.job import Hold, Job, Last, Pause
from solocron.model.documents.run import Record, Status, plain
from solocron.model.timetable import Resolve
from solocron.model.transitions.claimant import next_fence, record_of
from solocron.model.transitions.claiming import recompute_due
from solocron.model.transitions.shards import count
from solocron.model.transitions.waiting_again import same_attempt, waiting_again

__all__ = [
    *("ACCEPTED", "PAUSED", "HandBack", "HandOver", "Outcome", "NotPublished", "closed", "end_hold", "finish"),
    *("hand_back", "put_back_hold", "take_over"),
]

ACCEPTED = "accepted"
PAUSED = "accepted, and paused"
"""Answer to an accepted end that was the last failure that `pause_after` allows."""

_REMEMBERED = 256
"""Maximum number of accepted finishes that a job remembers."""
_ERROR_KEPT = 200
"""Characters of an error that are kept in the document for the next run; the log has all of it."""


@fast_init
@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of a body. `again`: a cancelled one waits anew (after a shutdown), budget permitting.

    `final`: the job itself ruled out a retry. `unasked`: its `on_retry` has not returned, so the question about the
    work of the crashed attempt is still open.
    """

    status: Status
    reason: str | None = None
    error: str | None = None
    result: str | None = None
    started_at: int | None = None
    progress: str | None = None
    again: bool = False
    final: bool = False
    unasked: bool = False

    @classmethod
    def succeeded(cls, result: str | None = None) -> Outcome:
        return cls(status=Status.SUCCEEDED, result=result)

    @classmethod
    def failed(cls, error: str) -> Outcome:
        return cls(status=Status.FAILED, error=error)

    @classmethod
    def timed_out(cls, reason: str) -> Outcome:
        return cls(status=Status.TIMED_OUT, reason=reason)

    @classmethod
    def cancelled(cls, reason: str, *, again: bool = False) -> Outcome:
        return cls(status=Status.CANCELLED, reason=reason, again=again)


@dataclass(frozen=True, slots=True)
class HandBack:
    """Not an outcome: the body never started; carries the reason."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """Not an outcome: the message is out, and a worker may pick the run up for `pickup` microseconds."""

    pickup: int
    carrier: str
    message: str
    note: str | None = None
    """Why the message before was not picked up, if the carrier knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotPublished:
    """Not an outcome: the message was not accepted, or that is in doubt; it is published again after `wait`."""

    wait: int
    carrier: str
    note: str


def finish(doc: Job | Absent, *, run: str, fence: int, outcome: Outcome, now: int, resolve: Resolve) -> Change | None:
    """End the hold (run, fence). None: it is not there, the write is stale and nothing changes.

    A finish that was accepted before, and whose reply was lost, is accepted again. A hand-over ends here only if it was
    the end of the run; otherwise it waits again.
    """
    if isinstance(doc, Absent):
        return None
    hold = doc.hold(run, fence)
    if hold is None:
        return Change(doc, answer="accepted before") if fence in doc.accepted else None
    keep = max(4, min(doc.definition.overlap.most * count(hold.shards), _REMEMBERED))
    job, records = end_hold(doc, hold, outcome, now=now, accepted=(*doc.accepted, fence)[-keep:])
    return closed(doc, job, records, now=now, resolve=resolve)


def hand_back(doc: Job | Absent, *, run: str, fence: int, now: int, reason: str, resolve: Resolve) -> Change | None:
    """Give up a hold whose body never started: its run waits again at once, and no retry is used up."""
    hold = None if isinstance(doc, Absent) else doc.hold(run, fence)
    if isinstance(doc, Absent) or hold is None:
        return None
    if hold.cancel is not None or hold.final:  # a stop was requested meanwhile, or its caller has been told
        job, records = end_hold(doc, hold, Outcome.cancelled(hold.cancel or reason), now=now)
        return closed(doc, job, records, now=now, resolve=resolve)
    if hold.handing:
        return closed(doc, put_back_hold(doc, hold, ready_at=now, note=None), (), now=now, resolve=resolve)
    record = record_of(doc, hold, Status.CANCELLED, now=now, reason=reason, finished_at=now)
    waiting_run = waiting_again(hold, ready_at=now, attempt=hold.attempt + 1, tries=hold.tries, crashed=hold.crashed)
    job = replace(doc, active=_without(doc, hold), waiting_runs=(*doc.waiting_runs, waiting_run))
    return closed(doc, job, (record,), now=now, resolve=resolve)


def take_over(
    doc: Job | Absent,
    *,
    session: str,
    now: int,
    reason: str,
    resolve: Resolve,
    progress: Mapping[tuple[str, int], str] | None = None,
) -> Change | None:
    """End every hold of a buried session as `lost`; the run waits again if the job retries after a crash.

    What it was only handing over waits again in any case: no body can have started under its hold.

    `progress` is what the session's document reports of its runs, by run and fence; the records keep it.
    """
    if isinstance(doc, Absent) or not any(hold.session == session for hold in doc.active):
        return None
    job, reported = doc, progress or {}
    records: list[Record] = []
    for hold in doc.active:
        if hold.session == session:
            outcome = Outcome(status=Status.LOST, reason=reason, progress=reported.get((hold.run, hold.fence)))
            job, ended = end_hold(job, hold, outcome, now=now)
            records.extend(ended)
    # A fence above every fence granted so far: a client that compares fences sees the old holder as stale at once.
    job = replace(job, fence=next_fence(job.fence, now))
    return closed(doc, job, tuple(records), now=now, resolve=resolve)


def end_hold(
    job: Job, hold: Hold, outcome: Outcome, *, now: int, accepted: tuple[int, ...] | None = None
) -> tuple[Job, tuple[Record, ...]]:
    """Return the job without the hold, with its next attempt waiting if it has one, and the record of the attempt.

    A hand-over ends by the carrier's acceptance, or for good if the carrier can never take the message. Otherwise it is
    not the end of an attempt: there is no record of it.
    """
    policy, status = job.definition, outcome.status
    if hold.handing and status is not Status.HANDED_OVER and not (status is Status.FAILED and outcome.final):
        return put_back_hold(job, hold, ready_at=now, note=None), ()
    failed = status is Status.FAILED or status is Status.TIMED_OUT
    crashed = status is Status.LOST and policy.on_crash == "retry"
    again = (failed or crashed or outcome.again) and hold.tries < policy.retries and hold.cancel is None
    again = again and not (outcome.final or hold.final)
    reason, waiting_runs = outcome.reason, job.waiting_runs
    if again and not job.removed:
        wait = policy.backoff.delay(hold.tries + 1, f"{hold.run}/{hold.attempt}") if failed else 0
        doubt = crashed or (hold.crashed and outcome.unasked)
        following = waiting_again(
            hold, ready_at=now + wait, attempt=hold.attempt + 1, tries=hold.tries + 1, crashed=doubt
        )
        waiting_runs = (*waiting_runs, following)
    elif status is Status.LOST and not reason:
        reason = "its lease ended"
    record = record_of(
        job,
        hold,
        status,
        now=now,
        reason=plain(reason),
        started_at=outcome.started_at,
        finished_at=now,
        error=plain(outcome.error),
        result=plain(outcome.result),
        progress=plain(outcome.progress),
    )
    error = record.error or record.reason
    good = status is Status.SUCCEEDED or status is Status.HANDED_OVER
    job = replace(
        job,
        active=_without(job, hold),
        waiting_runs=waiting_runs,
        accepted=job.accepted if accepted is None else accepted,
        failures=0 if good else job.failures + (not again and status is not Status.CANCELLED),
        last=build(
            Last,
            run=hold.run,
            slot=hold.slot,
            attempt=hold.attempt,
            status=status,
            finished_at=now,
            error=None if good or error is None else error[-_ERROR_KEPT:],
            node=hold.node,
        ),
    )
    return job, (record,)


def put_back_hold(job: Job, hold: Hold, *, ready_at: int, note: str | None) -> Job:
    """Return the job with a hand-over given up: the same attempt waits, and a message that is out stays good.

    A removed job has nothing that waits.
    """
    waiting_runs = () if job.removed else (same_attempt(hold, ready_at=ready_at, note=plain(note)),)
    return replace(job, active=_without(job, hold), waiting_runs=(*job.waiting_runs, *waiting_runs))


def _without(job: Job, hold: Hold) -> tuple[Hold, ...]:
    return tuple(other for other in job.active if other is not hold)


def closed(before: Job, job: Job, records: tuple[Record, ...], *, now: int, resolve: Resolve) -> Change:
    """Delete a removed job with its last hold; pause one that has failed as often as `pause_after` allows."""
    if job.removed and not job.active:
        return Change(None, records, ACCEPTED)
    answer, most = ACCEPTED, job.definition.pause_after
    if most is not None and job.failures >= most and job.failures > before.failures and job.paused is None:
        job, answer = replace(job, paused=_give_pause(job, now=now)), PAUSED
    if (
        not (before.waiting_runs or before.waiting_ranges or job.waiting_runs or job.waiting_ranges)
        and job.paused is before.paused
    ):
        return Change(job, records, answer)  # nothing waited or waits: the claim has computed what is due next
    return Change(recompute_due(job, resolve(job.definition.schedule)), records, answer)


def _give_pause(job: Job, *, now: int) -> Pause:
    note = f"{job.failures} {'run' if job.failures == 1 else 'runs in a row'} failed (pause_after)"
    error = job.last.error if job.last is not None else None
    if error:
        note += f"; the last: {error.strip().splitlines()[-1]}"
    return Pause(at=now, by="solocron", note=note)
