"""The ordinary claim on a short way: nothing of the job runs or waits, and one slot of it is on time.

Nearly every claim is one, and a burst is nothing else. The result is that of the long way, field by field, at a third
of the price. A claim that is not ordinary in any respect is left to the long way.
"""

from __future__ import annotations

from solocron.model._fast.values import build, replace
from solocron.model.change import Change
from solocron.model.documents.job import GIVEN_WAY, Hold, Job
from solocron.model.documents.run import Origin, run_id
from solocron.model.documents.scoped_pause import over
from solocron.model.timetable import Timetable
from solocron.model.transitions.claimant import Claimant, next_fence, patience_of

__all__ = ["ordinary"]


def ordinary(job: Job, slots: Timetable, *, now: int, by: Claimant) -> Change | None:
    """Return the change, or None if the claim is not an ordinary one."""
    policy = job.definition
    if (
        job.active
        or job.waiting_runs
        or job.waiting_ranges
        or job.paused is not None
        or job.removed
        or not policy.enabled
    ):
        return None
    if job.back is not None or (by.pauses and over(by.pauses, job)):
        return None
    if policy.shards is not None or policy.nodes is not None or policy.prefer is not None or policy.limit is not None:
        return None
    if policy.hand_over is not None:
        return None
    if policy.schedule is None or "calendar" in policy.schedule or job.source == GIVEN_WAY:
        return None
    cursor = slots.decided_until(job.cursor, job.nominal)
    first, following, reading = by.next_slots.after(slots, cursor)
    if first is None or first > now or cursor < job.cursor:
        return None
    if first <= now - patience_of(policy, by.late_for) or (following is not None and following <= now):
        return None
    timeout = policy.timeout
    hold = build(
        Hold,
        run=run_id(job.name, job.incarnation, Origin.SCHEDULE, first),
        slot=first,
        origin=Origin.SCHEDULE,
        attempt=1,
        tries=0,
        session=by.session,
        node=by.node,
        fence=next_fence(job.fence, now),
        claimed_at=now,
        deadline=None if timeout is None else now + timeout,
    )
    held = replace(job, cursor=first, nominal=reading, active=(hold,), fence=hold.fence, due_at=following)
    return Change(held, (), hold)
