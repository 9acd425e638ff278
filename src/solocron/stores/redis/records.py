"""The log's records as text and back: what a record was opened with never changes, what closed it is kept beside it."""

from __future__ import annotations

import json

from solocron.model.change import Change
from solocron.model.run import Op, Origin, Record, Status

__all__ = ["entry_words", "member_of", "record_of"]

_dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def entry_words(change: Change) -> list[str]:
    """The log entries of a change as words of the `swap` command, their number first."""
    words = [str(len(change.entries))]
    for entry in change.entries:
        r = entry.record
        finished = "-" if r.finished_at is None else r.finished_at
        if entry.op is Op.OPEN:
            opened = _dumps(
                [
                    *(r.slot, r.origin, r.key, r.reason, r.node, r.session, r.fence, r.claimed_at, r.started_at),
                    *(r.error, r.result, r.progress, r.first),
                ]
            )
            text = f"{r.status} {r.recorded_at} {finished} {r.count}\n{opened}\n\n\n{r.job}"
        elif entry.op is Op.CLOSE:
            text = f"{finished}\n{_dumps([r.reason, r.started_at, r.error, r.result, r.progress])}"
        else:
            text = _dumps(r.progress)
        words += (entry.op, member_of(r.run, r.attempt), r.status, str(r.recorded_at), str(r.count), r.job, text)
    return words


def member_of(run: str, attempt: int) -> str:
    """The record's name, ordered by run and then by attempt."""
    return f"{run} {attempt:08}"


def record_of(member: str, text: str) -> Record:
    """The record of five parts: facts, as opened, as closed, progress, job."""
    run, _, attempt = member.rpartition(" ")
    facts, opened, closed, noted, job = text.split("\n", 4)
    status, recorded_at, finished_at, count = facts.split(" ")
    slot, origin, key, reason, node, session, fence, claimed_at, started_at, error, result, progress, first = (
        json.loads(opened)
    )
    if noted:
        progress = json.loads(noted)
    if closed:
        reason, started_at, error, result, last = json.loads(closed)
        progress = progress if last is None else last
    return Record(
        run=run,
        job=job,
        attempt=int(attempt),
        slot=slot,
        origin=Origin(origin),
        status=Status(status),
        key=key,
        recorded_at=int(recorded_at),
        reason=reason,
        node=node,
        session=session,
        fence=fence,
        claimed_at=claimed_at,
        started_at=started_at,
        finished_at=None if finished_at == "-" else int(finished_at),
        error=error,
        result=result,
        progress=progress,
        first=first,
        count=int(count),
    )
