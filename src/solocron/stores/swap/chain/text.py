"""What the objects of a chain contain: commits, roots and segments of snapshots, each as JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = [
    *("Broken", "ChainCommit", "Entries", "Root", "Segment", "commit_name", "entries_of", "entries_to_bytes"),
    *("number_of", "root_name", "segment_name", "token_of"),
]

_VERSION = 1
Entries = dict[str, tuple[str | None, int]]
"""Keys with their values, None for a deleted one, and the numbers of the commits that wrote them."""


class Broken(Exception):
    """An object of the chain does not contain what Solocron writes."""


def commit_name(number: int) -> str:
    return f"c/{number:016}"


def root_name(number: int) -> str:
    return f"r/{number:016}"


def number_of(name: str) -> int:
    """Return the number of a commit or a root; 0 for a name that is neither."""
    digits = name.rpartition("/")[2]
    return int(digits) if digits.isdecimal() else 0


def segment_name(root: int, content: bytes) -> str:
    """Return a name that no other content has: clients that write a segment at once do not disturb each other."""
    return f"s/{root:016}.{hashlib.blake2b(content, digest_size=8).hexdigest()}"


@dataclass(frozen=True, slots=True)
class ChainCommit:
    """One commit: the token that its client knows it by, and its writes."""

    token: str
    writes: Mapping[str, str | None]

    def to_bytes(self) -> bytes:
        return _bytes({"v": _VERSION, "c": self.token, "w": dict(self.writes)})

    @classmethod
    def of(cls, content: bytes) -> ChainCommit:
        found = _parsed(content)
        try:
            return cls(str(found["c"]), dict(found["w"]))  # type: ignore[call-overload]
        except (KeyError, TypeError, ValueError):
            raise Broken("no commit") from None


def token_of(content: bytes) -> str:
    """Return the token of a commit; empty for what is none."""
    try:
        return ChainCommit.of(content).token
    except Broken:
        return ""


@dataclass(frozen=True, slots=True)
class Segment:
    """Some entries of a snapshot, in as many objects as they need."""

    names: tuple[str, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Root:
    """A state of the chain: the entries of its segments, later ones over earlier ones."""

    number: int
    made_at: int
    """By the service's clock, after the root before was read; the root itself may be created much later."""
    segments: tuple[Segment, ...] = ()

    def to_bytes(self) -> bytes:
        segments = [[*one.names, one.bytes] for one in self.segments]
        return _bytes({"v": _VERSION, "n": self.number, "t": self.made_at, "s": segments})

    @classmethod
    def of(cls, content: bytes) -> Root:
        found = _parsed(content)
        try:
            segments = tuple(Segment(tuple(map(str, names)), int(size)) for *names, size in found["s"])  # type: ignore[attr-defined]
            return cls(int(found["n"]), int(found["t"]), segments)  # type: ignore[call-overload]
        except (KeyError, TypeError, ValueError):
            raise Broken("no root") from None


def entries_to_bytes(entries: Entries, most: int) -> list[bytes]:
    """Return entries in their order as the contents of objects, each of about `most` bytes, and one at least."""
    parts: list[bytes] = []
    rows: list[str] = []
    size = 0
    for key in sorted(entries):
        value, mark = entries[key]
        row = json.dumps([key, value, mark], ensure_ascii=False, separators=(",", ":"))
        length = len(row.encode())
        if rows and size + length > most:
            parts.append(_rows(rows))
            rows, size = [], 0
        rows.append(row)
        size += length + 1
    return [*parts, _rows(rows)]


def _rows(rows: Sequence[str]) -> bytes:
    return f"[{','.join(rows)}]".encode()


def entries_of(content: bytes) -> Entries:
    try:
        return {str(key): (value, int(mark)) for key, value, mark in json.loads(content)}
    except (TypeError, ValueError):
        raise Broken("no segment") from None


def _bytes(found: Mapping[str, object]) -> bytes:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()


def _parsed(content: bytes) -> Mapping[str, object]:
    try:
        found = json.loads(content)
    except ValueError:
        raise Broken("no JSON") from None
    if not isinstance(found, dict) or found.get("v") != _VERSION:
        raise Broken("another version")
    return found
