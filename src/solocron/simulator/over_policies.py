"""What must hold for every commit because an owner asked for it: policies that are decided beside the slots."""

from __future__ import annotations

from solocron.model.job import Job
from solocron.model.run import Op, Status
from solocron.simulator.checker import Checker, Violation
from solocron.simulator.database import Commit

__all__ = ["POLICIES"]

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


POLICIES = {test.__name__: test for test in (i10_pause_after,)}
