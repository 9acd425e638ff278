"""The log's records as words of the `swap` command, and back."""

from __future__ import annotations

from collections.abc import Sequence

from solocron.model.documents.run import Record
from solocron.stores.record_text import record_from, record_text

__all__ = ["RECORD", "member_of", "record_of", "record_words", "spelt_records"]

RECORD = 6
"""Words of a record."""


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
    return member_of(r.run, r.attempt), r.status, str(r.recorded_at), str(r.count), r.job, record_text(r)


def member_of(run: str, attempt: int) -> str:
    """The record's name, ordered by run and then by attempt."""
    return f"{run} {attempt:08}"


def record_of(member: str, text: str) -> Record:
    """Return the record of this name and text."""
    run, _, attempt = member.rpartition(" ")
    return record_from(run, int(attempt), text)
