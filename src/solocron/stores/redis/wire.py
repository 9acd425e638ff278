"""Commands as Redis reads them, and the one text in which `fetch` returns documents.

Packed and unpacked here and not by the driver, whose general way costs more per document than all the rest of a call.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from solocron.stores.drafts import Row

__all__ = ["Fetched", "Words", "pack", "spell", "unpack"]

_new = tuple.__new__  # the constructor of a named tuple costs three times as much, and a run makes four
_SIZES = struct.Struct(">4I")


@dataclass(slots=True)
class Fetched:
    """A reply of `fetch`: the time, the first due instant that was left, and the documents.

    The mark of a row is empty where there is no document, and `!` where the key is not a document.
    """

    now: int
    next_due: int | None
    live: bool
    more: bool
    commits: int
    rows: list[Row]
    reservation: str = ""
    """The name under which they are reserved for this client for a moment."""


class Words(NamedTuple):
    """Some words of a command in the protocol's own form, and how many they are."""

    number: int
    text: str


def spell(words: Sequence[str]) -> Words:
    """Raises for a word that UTF-8 cannot carry: better here than in the command of a whole batch."""
    text = "\r\n".join([f"${len(word)}\r\n{word}" for word in words])
    if not text.isascii():  # lengths are in bytes
        text = "\r\n".join([f"${len(word.encode())}\r\n{word}" for word in words])
    return _new(Words, (len(words), f"{text}\r\n"))


def pack(words: Sequence[str], more: Sequence[Words] = ()) -> bytes:
    """One command."""
    first = spell(words)
    count = first.number + sum([one.number for one in more])
    return f"*{count}\r\n{first.text}{''.join([one.text for one in more])}".encode()


def unpack(reply: bytes) -> Fetched:
    """The documents of a reply: a line of facts, then of each document four lengths and four texts."""
    facts, _, body = reply.partition(b"\n")
    now, next_due, live, more, commits = facts.split()
    rows, at = [], 0
    while at < len(body):
        sizes = _SIZES.unpack_from(body, at)
        name = at + _SIZES.size
        version = name + sizes[0]
        fixed = version + sizes[1]
        state = fixed + sizes[2]
        at = state + sizes[3]
        texts = (
            body[name:version].decode(),
            body[version:fixed].decode(),
            # A text that someone spoiled fails when it is read as JSON, as that document's own trouble.
            body[fixed:state].decode(errors="replace"),
            body[state:at].decode(errors="replace"),
        )
        rows.append(_new(Row, texts))
    due = None if next_due == b"-" else int(next_due)
    return Fetched(int(now), due, live == b"1", more == b"1", int(commits), rows)
