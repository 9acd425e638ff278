"""The log's records as text and back: a line of facts that scripts read, a line of JSON, and the job's name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from json.encoder import encode_basestring

from solocron.model.documents.run import Origin, Record, Status

__all__ = ["RECORD", "member_of", "record_of", "record_words", "spelt_records"]

RECORD = 6
"""Words of a record."""


def _quoted(text: str | None) -> str:
    return "null" if text is None else encode_basestring(text)


def _number(value: int | None) -> str:
    return "null" if value is None else str(value)


def _ends(r: Record) -> str:
    if r.error is None and r.result is None and r.progress is None:
        return "null,null,null"
    return f"{_quoted(r.error)},{_quoted(r.result)},{_quoted(r.progress)}"


def _author(r: Record) -> str:
    """Who asked for it and why, at the end of the list: most records have none."""
    return "" if r.asked_by is None and r.note is None else f",{_quoted(r.asked_by)},{_quoted(r.note)}"


def record_words(records: Sequence[Record]) -> list[str]:
    """The records of a change as words of the `swap` command, their number first."""
    words = [str(len(records))]
    for record in records:
        words += _words(record)
    return words


def spelt_records(records: Sequence[Record]) -> str:
    """The same in the protocol's own form; wrong, as every length is in characters, where not all of it is ASCII."""
    count = str(len(records))
    spelt = f"${len(count)}\r\n{count}\r\n"
    for record in records:
        member, status, at, slots, job, text = _words(record)
        spelt += (
            f"${len(member)}\r\n{member}\r\n${len(status)}\r\n{status!s}\r\n${len(at)}\r\n{at}\r\n"
            f"${len(slots)}\r\n{slots}\r\n${len(job)}\r\n{job}\r\n${len(text)}\r\n{text}\r\n"
        )
    return spelt


def _words(r: Record) -> tuple[str, str, str, str, str, str]:
    return member_of(r.run, r.attempt), r.status, str(r.recorded_at), str(r.count), r.job, _text(r)


def _text(r: Record) -> str:
    finished = "-" if r.finished_at is None else r.finished_at
    return (
        f'{r.status!s} {r.recorded_at} {finished} {r.count}\n[{r.slot},"{r.origin!s}",{_quoted(r.key)},'
        f"{_quoted(r.reason)},{_quoted(r.node)},{_quoted(r.session)},{r.fence},{_number(r.claimed_at)},"
        f"{_number(r.started_at)},{_ends(r)},{_number(r.first)}{_author(r)}]\n{r.job}"
    )


def member_of(run: str, attempt: int) -> str:
    """The record's name, ordered by run and then by attempt."""
    return f"{run} {attempt:08}"


def record_of(member: str, text: str) -> Record:
    """The record of three parts: facts, the rest in JSON, job."""
    run, _, attempt = member.rpartition(" ")
    facts, rest, job = text.split("\n", 2)
    status, recorded_at, finished_at, count = facts.split(" ")
    slot, origin, key, reason, node, session, fence, claimed_at, started_at, error, result, progress, first, *author = (
        json.loads(rest)
    )
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
        asked_by=author[0] if author else None,
        note=author[1] if author else None,
    )
