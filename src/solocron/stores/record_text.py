"""Records of the log as text and back, for stores without columns: a line of facts, a line of JSON, the job's name."""

from __future__ import annotations

import json
from json.encoder import encode_basestring

from solocron.model.documents.run import Origin, Record, Status
from solocron.stores.contract import Query

__all__ = ["may_be_found", "record_from", "record_text", "recorded_at"]


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


def record_text(r: Record) -> str:
    """Return a record as text, without its run and attempt."""
    finished = "-" if r.finished_at is None else r.finished_at
    return (
        f'{r.status!s} {r.recorded_at} {finished} {r.count}\n[{r.slot},"{r.origin!s}",{_quoted(r.key)},'
        f"{_quoted(r.reason)},{_quoted(r.node)},{_quoted(r.session)},{r.fence},{_number(r.claimed_at)},"
        f"{_number(r.started_at)},{_ends(r)},{_number(r.first)}{_author(r)}]\n{r.job}"
    )


def recorded_at(text: str) -> int:
    """Return when a record was recorded, without reading the rest of its text."""
    return int(text.split(" ", 2)[1])


def may_be_found(query: Query, text: str) -> bool:
    """Return False for a text that has not the words of a query's filters; True says only that it is worth reading.

    A search for few among many reads twenty thousand texts, most of them in vain.
    """
    return (
        (query.node is None or _quoted(query.node) in text)
        and (query.session is None or _quoted(query.session) in text)
        and (not query.origins or any(f'"{origin!s}"' in text for origin in query.origins))
    )


def record_from(run: str, attempt: int, text: str) -> Record:
    """Return the record of a text."""
    facts, rest, job = text.split("\n", 2)
    status, recorded_at, finished_at, count = facts.split(" ")
    slot, origin, key, reason, node, session, fence, claimed_at, started_at, error, result, progress, first, *author = (
        json.loads(rest)
    )
    return Record(
        run=run,
        job=job,
        attempt=attempt,
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
