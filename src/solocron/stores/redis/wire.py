"""Commands as Redis reads them, and the one text in which `fetch` returns documents.

Packed and unpacked here and not by the driver, whose general way costs more per document than all the rest of a call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Fetched", "Row", "pack", "sendable", "unpack"]


class Row(NamedTuple):
    """A document as it lies in Redis; the version is empty where there is none, `!` where the key is no document."""

    name: str
    version: str
    fixed: str
    state: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """A reply of `fetch`: the time, the first due instant that was left, and the documents."""

    now: int
    next_due: int | None
    live: bool
    more: bool
    commits: int
    rows: list[Row]


def pack(words: Iterable[str]) -> bytes:
    """One command in the protocol's own form."""
    parts = [f"${len(word) if word.isascii() else len(word.encode())}\r\n{word}\r\n" for word in words]
    return f"*{len(parts)}\r\n{''.join(parts)}".encode()


def sendable(*texts: str) -> None:
    """Raise for a text that UTF-8 cannot carry, before it spoils the command of a whole batch."""
    for text in texts:
        if not text.isascii():
            text.encode()


def unpack(reply: bytes) -> Fetched:
    """The documents of a reply: a line of facts, a line of lengths, then the four texts of each document."""
    facts, lengths, body = reply.split(b"\n", 2)
    now, next_due, live, more, commits = facts.split()
    sizes = list(map(int, lengths.split()))
    rows, at = [], 0
    for i in range(0, len(sizes), 4):
        name = at + sizes[i]
        version = name + sizes[i + 1]
        fixed = version + sizes[i + 2]
        end = fixed + sizes[i + 3]
        # A text that someone spoiled fails when it is read as JSON, as that document's own trouble.
        texts = body[version:fixed].decode(errors="replace"), body[fixed:end].decode(errors="replace")
        rows.append(Row(body[at:name].decode(), body[name:version].decode(), *texts))
        at = end
    due = None if next_due == b"-" else int(next_due)
    return Fetched(int(now), due, live == b"1", more == b"1", int(commits), rows)
