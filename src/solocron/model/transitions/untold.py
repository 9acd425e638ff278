"""Slots that lost claims had decided and that no node reports: recorded as lost, once the check is over."""

from __future__ import annotations

from collections.abc import Iterable

from solocron.model._fast.values import replace
from solocron.model.documents.job import Back, Job, Told, WaitingRun
from solocron.model.documents.run import Origin, Record, Status, group_of
from solocron.model.timetable import Timetable
from solocron.model.transitions.catchup import did_not_run, leave_out, pass_over
from solocron.model.transitions.shards import count, each, labels

__all__ = ["WENT_BACK", "write_off_untold"]

WENT_BACK = "the store went back"


def write_off_untold(job: Job, slots: Timetable, *, now: int) -> tuple[Job, tuple[Record, ...]]:
    """Record as lost what lost claims had decided and no node has reported. The check is over."""
    back = job.back
    if back is None:
        return job, ()
    records: list[Record] = []
    before = replace(job, cursor=back.cursor)
    told = sorted({one.slot for one in back.told if back.cursor < one.slot <= job.cursor})
    since = back.cursor
    for slot in (*told, None):
        until = job.cursor if slot is None else slot - 1
        pass_over(before, slots, records, since, until, Status.LOST, WENT_BACK, now=now)
        since = until if slot is None else slot
    records.extend(leave_out(before, slots, back.cursor, job.cursor, now=now))
    for one in {group_of(one.run): one for one in back.told if one.shards is not None}.values():
        records.extend(_untold_shards(job, back, one, now=now))
    return replace(job, back=None), tuple(records)


def _untold_shards(job: Job, back: Back, one: Told, *, now: int) -> Iterable[Record]:
    group, shards = group_of(one.run), one.shards
    assert shards is not None
    known = {told.run for told in back.told} | {hold.run for hold in job.active}
    known |= {o.run for waiting_run in job.waiting_runs for o in each(waiting_run)}
    for index in range(count(shards)):
        run = f"{group}#{index}"
        if run not in known:
            gone = WaitingRun(
                run=run, slot=one.slot, origin=Origin.SCHEDULE, ready_at=now, shard=labels(shards)[index], shards=shards
            )
            yield did_not_run(job, gone, Status.LOST, WENT_BACK, now=now)
