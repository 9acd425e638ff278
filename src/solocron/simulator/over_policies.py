"""What must hold for every commit because an owner asked for it: policies that are decided beside the slots."""

from __future__ import annotations

from solocron.model.job import Job
from solocron.model.run import Op, Status
from solocron.simulator.checker import Checker, Violation
from solocron.simulator.database import Commit
from solocron.simulator.ledger import Line

__all__ = ["LINES", "POLICIES"]

_BAD = (Status.FAILED, Status.TIMED_OUT, Status.LOST)


def i10_pause_after(_: Checker, commit: Commit) -> None:
    """So many failed runs in a row pause the job, in the commit that records the last; nothing else does by itself."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not isinstance(after, Job) or after.removed:
        return
    most = before.definition.pause_after
    by_itself = after.paused is not None and after.paused.by == "solocron" and before.paused is None
    ended = [entry.record for entry in commit.entries if entry.op is Op.CLOSE]
    retried = {owed.run for owed in after.owed}
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
    """Missed slots of a job with a rate start no faster than that, whichever node claims them."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not isinstance(after, Job) or after.paced == before.paced:
        return
    paces = [s.pace for s in (*before.stretches, *after.stretches) if s.pace] + [before.definition.catch_up.pace or 0]
    last = checker.paced.get(commit.name, 0)
    checker.paced[commit.name] = commit.decided
    if commit.decided - last < min(pace for pace in paces if pace or len(paces) == 1):
        raise Violation("I10", f"{commit.name} started missed slots {(commit.decided - last) / 1e6:.3f} s apart")


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
    """What on_retry answered is what is recorded, unless its node was lost or stopped before it could say so."""
    if not isinstance(commit.before, Job):
        return
    for entry in commit.entries:
        record = entry.record
        answer = checker.answered.get((record.run, record.fence)) if entry.op is Op.CLOSE else None
        wanted = {"done": Status.SUCCEEDED, "give up": Status.FAILED, "raise": Status.FAILED}.get(answer or "")
        others = (Status.LOST, Status.CANCELLED, Status.TIMED_OUT)
        if wanted is not None and record.status is not wanted and record.status not in others:
            raise Violation("I17", f"on_retry of {record.run} said {answer}, but it is on record as {record.status}")
        owed = isinstance(commit.after, Job) and any(o.run == record.run for o in commit.after.owed)
        if answer in ("done", "give up") and record.status is wanted and owed:
            raise Violation("I17", f"on_retry of {record.run} said {answer}, but it is owed again")


def _asks(checker: Checker, job: Job) -> bool:
    return any(plan.name == job.definition.handler and plan.asks for plan in checker.world.workload.plans)


POLICIES = {test.__name__: test for test in (i10_pause_after, i10_catch_up_rate, i17_answers_are_kept)}
LINES = {test.__name__: test for test in (i17_asked_before_a_repeat,)}
