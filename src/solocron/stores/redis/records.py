"""The log's records as text and back: what a record was opened with never changes, what closed it is kept beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from json.encoder import encode_basestring

from solocron.model.documents.run import Entry, Op, Origin, Record, Status

__all__ = ["ENTRY", "entry_words", "member_of", "record_of", "spelt_entries"]

ENTRY = 7
"""Words of an entry."""


_OPEN, _CLOSE = Op.OPEN, Op.CLOSE


def _quoted(text: str | None) -> str:
    return "null" if text is None else encode_basestring(text)


def _number(value: int | None) -> str:
    return "null" if value is None else str(value)


def _ends(r: Record) -> str:
    if r.error is None and r.result is None and r.progress is None:
        return "null,null,null"
    return f"{_quoted(r.error)},{_quoted(r.result)},{_quoted(r.progress)}"


def entry_words(entries: Sequence[Entry]) -> list[str]:
    """The log entries of a change as words of the `swap` command, their number first."""
    words = [str(len(entries))]
    for entry in entries:
        words += _words(entry)
    return words


def spelt_entries(entries: Sequence[Entry]) -> str:
    """The same in the protocol's own form; wrong, as every length is in characters, where not all of it is ASCII."""
    count = str(len(entries))
    spelt = f"${len(count)}\r\n{count}\r\n"
    for entry in entries:
        op, member, status, at, slots, job, text = _words(entry)
        spelt += (
            f"${len(op)}\r\n{op!s}\r\n${len(member)}\r\n{member}\r\n${len(status)}\r\n{status!s}\r\n${len(at)}\r\n{at}\r\n"
            f"${len(slots)}\r\n{slots}\r\n${len(job)}\r\n{job}\r\n${len(text)}\r\n{text}\r\n"
        )
    return spelt


def _words(entry: Entry) -> tuple[str, str, str, str, str, str, str]:
    r = entry.record
    return entry.op, member_of(r.run, r.attempt), r.status, str(r.recorded_at), str(r.count), r.job, _text(entry)


def _text(entry: Entry) -> str:
    """What an entry writes: the record as it is opened, its end, or its progress."""
    r = entry.record
    if entry.op is _OPEN:
        finished = "-" if r.finished_at is None else r.finished_at
        return (
            f'{r.status!s} {r.recorded_at} {finished} {r.count}\n[{r.slot},"{r.origin!s}",{_quoted(r.key)},'
            f"{_quoted(r.reason)},{_quoted(r.node)},{_quoted(r.session)},{r.fence},{_number(r.claimed_at)},"
            f"{_number(r.started_at)},{_ends(r)},{_number(r.first)}]\n\n\n{r.job}"
        )
    if entry.op is _CLOSE:
        finished = "-" if r.finished_at is None else r.finished_at
        return f"{finished}\n[{_quoted(r.reason)},{_number(r.started_at)},{_ends(r)}]"
    return _quoted(r.progress)


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
