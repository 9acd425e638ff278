"""Invariants of every commit because an owner asked for them: policies that are decided beside the slots."""

from __future__ import annotations

from proof.invariants.checker import Checker, Violation, new_holds
from proof.workloads.ledger import Line
from solocron.model.documents.job import Job
from solocron.model.documents.run import Origin, Status
from solocron.testing.simulation.database import Commit

__all__ = ["LINES", "POLICIES"]

_BAD = (Status.FAILED, Status.TIMED_OUT, Status.LOST)


def i10_pause_after(_: Checker, commit: Commit) -> None:
    """So many failed runs in a row pause the job, in the commit that records the last; nothing else does by itself."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not isinstance(after, Job) or after.removed:
        return
    most = before.definition.pause_after
    by_itself = after.paused is not None and after.paused.by == "solocron" and before.paused is None
    ended = [record for record in commit.records if record.attempt]
    retried = {waiting_run.run for waiting_run in after.waiting_runs}
    failed = sum(record.status in _BAD and record.run not in retried for record in ended)
    succeeded = any(record.status is Status.SUCCEEDED for record in ended)
    if most is None or succeeded:
        if by_itself and most is None:
            raise Violation("I10", f"{commit.name} was paused, but has no pause_after")
        return
    over = failed > 0 and before.failures + failed >= most
    if over and after.paused is None:
        raise Violation("I10", f"{commit.name} failed {before.failures + failed} times in a row and goes on")
    if by_itself and not over:
        raise Violation("I10", f"{commit.name} was paused after {before.failures + failed} failures, {most} allowed")


def i10_catch_up_rate(checker: Checker, commit: Commit) -> None:
    """Missed slots of a job with a rate, and those of a backfill with one, start no faster, whichever node has them."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not isinstance(after, Job) or after.paced == before.paced:
        return
    taken = [(hold.origin, hold.request) for hold in new_holds(commit)]
    paces = [
        s.pace
        for s in (*before.waiting_ranges, *after.waiting_ranges)
        if s.pace is not None and (s.origin, s.request) in taken
    ]
    declared = before.definition.catch_up.pace
    paces += [declared] if declared is not None and (Origin.SCHEDULE, None) in taken else []
    last = checker.paced.get(commit.name, 0)
    checker.paced[commit.name] = commit.decided
    if commit.decided - last < min(paces, default=0):
        raise Violation("I10", f"{commit.name} started missed slots {(commit.decided - last) / 1e6:.3f} s apart")


def i5_no_backfill_vanishes(_: Checker, commit: Commit) -> None:
    """Slots that wait in a backfill are started or on record, one by one; none is lost, none invented."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not isinstance(after, Job) or before.waiting_ranges is after.waiting_ranges:
        return
    known = {s.request for s in before.waiting_ranges}
    asked = sum(s.total or 0 for s in after.waiting_ranges if s.origin is Origin.BACKFILL and s.request not in known)
    told = [record for record in commit.records if record.origin is Origin.BACKFILL]
    holds = [hold for hold in new_holds(commit) if hold.origin is Origin.BACKFILL and hold.attempt == 1]
    # The shards and parts of a slot are taken or missed one by one, but the slot leaves the range as a whole.
    begun = {waiting_run.run.partition("#")[0] for waiting_run in before.waiting_runs}
    recorded = sum(r.count for r in told if r.attempt == 0 and r.run.partition("#")[0] not in begun)
    runs = [hold.run for hold in holds]
    runs += [o.run for o in after.waiting_runs if o.origin is Origin.BACKFILL and o.offer is not None]
    started = len({run.partition("#")[0] for run in runs} - begun)
    if _past(before) + asked != _past(after) + recorded + started:
        raise Violation(
            "I5",
            f"{commit.name}: {_past(before)} slots waited in a backfill, {asked} more were asked for, and then "
            f"{_past(after)} wait, {recorded} are recorded and {started} started",
        )


def i10_live_slots_before_the_past(_: Checker, commit: Commit) -> None:
    """A run of a backfill begins only when no slot of its job is ready to begin."""
    after = commit.after
    past = [h for h in new_holds(commit) if h.origin is Origin.BACKFILL and h.attempt == 1 and h.shard is None]
    if not past or not isinstance(after, Job) or after.definition.hand_over is not None:
        return  # one that waits in a queue has begun, and slots wait for it
    for waiting_run in after.waiting_runs:
        live = waiting_run.origin is Origin.SCHEDULE and waiting_run.shards is None and not waiting_run.tries
        if live and waiting_run.ready_at <= commit.decided and waiting_run.attempt == 1:
            raise Violation("I10", f"{past[0].run} of a backfill began before {waiting_run.run}, which was ready")


def _past(job: Job) -> int:
    return sum(s.count for s in job.waiting_ranges if s.origin is Origin.BACKFILL)


def i17_asked_before_a_repeat(checker: Checker, line: Line) -> None:
    """A run of a job with on_retry starts again after a crash only if that said so, under this very claim."""
    job = checker.world.database.jobs.get(line.job)
    if line.what != "start" or job is None or not _asks(checker, job):
        return
    hold = checker.granted.get((line.run, line.fence))
    if hold is None or checker.ended.get((line.run, line.attempt - 1)) is not Status.LOST:
        return
    answer = checker.answered.get((line.run, line.fence))
    if answer != "repeat":
        raise Violation("I17", f"{line.run} attempt {line.attempt} started after a crash, on_retry said {answer}")


def i17_answers_are_kept(checker: Checker, commit: Commit) -> None:
    """The answer of on_retry is what is recorded, unless its node was lost or stopped before it could say so."""
    if not isinstance(commit.before, Job):
        return
    for record in commit.records:
        answer = checker.answered.get((record.run, record.fence)) if record.attempt else None
        wanted = {"done": Status.SUCCEEDED, "give up": Status.FAILED, "raise": Status.FAILED}.get(answer or "")
        others = (Status.LOST, Status.CANCELLED, Status.TIMED_OUT)
        if wanted is not None and record.status is not wanted and record.status not in others:
            raise Violation("I17", f"on_retry of {record.run} said {answer}, but it is on record as {record.status}")
        waiting_run = isinstance(commit.after, Job) and any(o.run == record.run for o in commit.after.waiting_runs)
        if answer in ("done", "give up") and record.status is wanted and waiting_run:
            raise Violation("I17", f"on_retry of {record.run} said {answer}, but it waits again")


def _asks(checker: Checker, job: Job) -> bool:
    return any(plan.name == job.definition.handler and plan.asks for plan in checker.world.workload.plans)


POLICIES = {
    test.__name__: test
    for test in (
        i10_pause_after,
        i10_catch_up_rate,
        i17_answers_are_kept,
        i5_no_backfill_vanishes,
        i10_live_slots_before_the_past,
    )
}
LINES = {test.__name__: test for test in (i17_asked_before_a_repeat,)}
