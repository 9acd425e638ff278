"""The ordinary claim, taken the short way: nothing of the job runs or waits, and one slot of it is on time.

Nearly every claim is one, and a burst is nothing else. The answer is that of the long way, field by field, at a
third of the price; whatever is not ordinary in any respect is left to it.
"""

from __future__ import annotations

from solocron.model._fast.values import from_fields, replace
from solocron.model.change import Change
from solocron.model.documents.job import GIVEN_WAY, Hold, Job
from solocron.model.documents.run import Entry, Op, Origin, Status, run_id
from solocron.model.timetable import EMPTY, Timetable
from solocron.model.transitions.claimant import Claimant, next_fence, patience_of, record_of
from solocron.schedules.native import Native

__all__ = ["ordinary"]

_SCHEDULE, _OPEN, _RUNNING = Origin.SCHEDULE, Op.OPEN, Status.RUNNING

_Two = tuple[int | None, int | None, str | None]
_asked: tuple[Timetable, int, _Two] = (EMPTY, 0, (None, None, None))
"""What was asked last: jobs that fall due together often share the very timetable, and stand at the same slot."""


def ordinary(job: Job, slots: Timetable, *, now: int, by: Claimant) -> Change | None:
    """The change, if the claim is an ordinary one."""
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
    if job.back is not None:
        return None
    if policy.shards is not None or policy.nodes is not None or policy.prefer is not None or policy.limit is not None:
        return None
    if policy.schedule is None or "calendar" in policy.schedule or job.source == GIVEN_WAY:
        return None
    cursor = slots.decided_until(job.cursor, job.nominal)
    first, following, reading = _next_two(slots, cursor)
    if first is None or first > now or cursor < job.cursor:
        return None
    if first <= now - patience_of(policy, by.late_for) or (following is not None and following <= now):
        return None
    timeout = policy.timeout
    facts = {
        "run": run_id(job.name, job.incarnation, _SCHEDULE, first),
        "slot": first,
        "origin": _SCHEDULE,
        "attempt": 1,
        "tries": 0,
        "session": by.session,
        "node": by.node,
        "fence": next_fence(job.fence, now),
        "claimed_at": now,
        "deadline": None if timeout is None else now + timeout,
    }
    hold = from_fields(Hold, facts)
    held = replace(job, cursor=first, nominal=reading, active=(hold,), fence=hold.fence, due_at=following)
    return Change(held, (Entry(_OPEN, record_of(held, hold, _RUNNING, now=now)),), hold)


def _next_two(slots: Timetable, cursor: int) -> _Two:
    """The next slot, the one after it, and how the first reads; only built-in schedules answer the same every time."""
    global _asked
    known = _asked
    if known[0] is slots and known[1] == cursor:
        return known[2]
    first = slots.after(cursor)
    if first is None:
        return None, None, None
    two = first, slots.after(first), slots.nominal(first)
    if isinstance(slots.schedule, Native):
        _asked = slots, cursor, two
    return two
