"""Decide slots across the pauses of many jobs at once.

Before a pause a slot is decided as if it were the instant at which the pause began, as a job's own pause does. Within
it a slot is skipped. Other than a job's own pause, it is recorded while the pause stands: the job's document knows
nothing of it, so that a lifted pause leaves nothing behind that a node would have to undo.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from solocron.model._fast.values import replace
from solocron.model.documents.job import Job
from solocron.model.documents.run import Record, Status
from solocron.model.documents.scoped_pause import ScopedPause, over
from solocron.model.timetable import Timetable
from solocron.model.transitions.catchup import decided_up_to, leave_out, pass_over

__all__ = ["Decide", "decide_through", "pause_at"]


class Decide(Protocol):
    """Decides every slot up to `now`, as if no pause had ever stood."""

    def __call__(self, job: Job, slots: Timetable, *, now: int) -> tuple[Job, tuple[Record, ...]]: ...


def decide_through(
    job: Job, slots: Timetable, pauses: Sequence[ScopedPause], *, now: int, decide: Decide
) -> tuple[Job, tuple[Record, ...]]:
    """Decide every slot up to now: those within a pause are skipped, `decide` is asked for the others."""
    records: list[Record] = []
    for pause in over(pauses, job):
        if pause.at >= now:
            break
        job, decided = decide(job, slots, now=pause.at)
        records.extend(replace(record, recorded_at=now, finished_at=now) for record in decided)
        job = _skip(job, slots, records, pause, now)
    job, decided = decide(job, slots, now=now)
    return job, (*records, *decided)


def _skip(job: Job, slots: Timetable, records: list[Record], pause: ScopedPause, now: int) -> Job:
    """Record the slots within a pause as skipped, and move the cursor to the last of them.

    Not to now: a look at a paused job must not write its document unless a slot has come.
    """
    decided = slots.decided_until(job.cursor, job.nominal)
    since = max(decided, pause.at)
    last = slots.before((now if pause.until is None else min(pause.until, now)) + 1)
    if last is None or last <= since:
        return job
    pass_over(job, slots, records, since, last, Status.SKIPPED, pause.reason, now=now)
    # Days off between the last slot and the pause as well: the cursor passes them here.
    records.extend(leave_out(job, slots, decided, last, now=now))
    return decided_up_to(job, slots, last)


def pause_at(pauses: Sequence[ScopedPause], job: Job, slot: int) -> ScopedPause | None:
    """Return a pause into which a slot of the job falls."""
    for one in pauses:
        if one.at < slot and not (one.until is not None and slot > one.until) and one.scope.covers(job):
            return one
    return None
