"""ZooKeeper's wire format: numbers, strings and records as Jute packs them, as much of it as the store needs."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

__all__ = [
    *("ADD_WATCH", "AUTH", "BAD_VERSION", "CHECK", "CLOSE", "CREATE", "DELETE", "EXISTS_NODE", "GET", "CHILDREN"),
    *("MULTI", "MULTI_READ", "NODE_EXISTS", "NO_AUTH", "NO_NODE", "OK", "PING", "SASL", "SET", "SYNC"),
    *("Operation", "Reader", "Stat", "check", "connect", "create", "delete", "exists", "get", "children", "multi"),
    *("buffer", "multi_results", "read_results", "set_data", "text", "watch"),
]

CREATE, DELETE, EXISTS_NODE, GET, SET, CHILDREN, SYNC, PING, CHECK, MULTI = 1, 2, 3, 4, 5, 8, 9, 11, 13, 14
MULTI_READ, AUTH, SASL, ADD_WATCH, CLOSE = 22, 100, 102, 106, -11
OK, NO_NODE, NO_AUTH, BAD_VERSION, NODE_EXISTS = 0, -101, -102, -103, -110

_INT, _LONG, _BOOL = struct.Struct(">i"), struct.Struct(">q"), struct.Struct(">?")
_HEAD = struct.Struct(">i?i")
_STAT = struct.Struct(">qqqqiiiqiiq")
_ALL = 31
"""Every right on a node."""

T = TypeVar("T")


class Stat(NamedTuple):
    """The metadata that ZooKeeper keeps of a node."""

    modified_in: int
    """The transaction that wrote it last."""
    modified_at: int
    """When that was, in milliseconds by the clock of the leader."""
    version: int


class Operation(NamedTuple):
    """One operation of a transaction, packed."""

    code: int
    body: bytes


# --- packing


def text(value: str) -> bytes:
    return buffer(value.encode())


def buffer(value: bytes) -> bytes:
    return _INT.pack(len(value)) + value


def connect(timeout: int) -> bytes:
    """Ask for a new session that lasts so many milliseconds after the last call."""
    return _INT.pack(0) + _LONG.pack(0) + _INT.pack(timeout) + _LONG.pack(0) + buffer(bytes(16)) + _BOOL.pack(False)


def create(path: str, data: bytes, *, private: bool) -> Operation:
    """Create a node; `private`: only for the user of this session, else open to every client."""
    scheme, who = ("auth", "") if private else ("world", "anyone")
    rights = _INT.pack(1) + _INT.pack(_ALL) + text(scheme) + text(who)
    return Operation(CREATE, text(path) + buffer(data) + rights + _INT.pack(0))


def delete(path: str, version: int = -1) -> Operation:
    return Operation(DELETE, text(path) + _INT.pack(version))


def set_data(path: str, data: bytes, version: int = -1) -> Operation:
    return Operation(SET, text(path) + buffer(data) + _INT.pack(version))


def check(path: str, version: int = -1) -> Operation:
    return Operation(CHECK, text(path) + _INT.pack(version))


def get(path: str) -> Operation:
    return Operation(GET, text(path) + _BOOL.pack(False))


def exists(path: str) -> Operation:
    return Operation(EXISTS_NODE, text(path) + _BOOL.pack(False))


def children(path: str) -> Operation:
    return Operation(CHILDREN, text(path) + _BOOL.pack(False))


def watch(path: str) -> Operation:
    """Watch a node and everything below it until the session ends."""
    return Operation(ADD_WATCH, text(path) + _INT.pack(1))


def multi(operations: Sequence[Operation]) -> bytes:
    """Pack operations that are made together or not at all; or reads that are answered together."""
    parts = [_HEAD.pack(one.code, False, -1) + one.body for one in operations]
    return b"".join(parts) + _HEAD.pack(-1, True, -1)


# --- unpacking


class Reader:
    """Reads a reply from its beginning."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self._at = at

    def _take(self, form: struct.Struct) -> tuple[int, ...]:
        found = form.unpack_from(self._data, self._at)
        self._at += form.size
        return found

    def number(self) -> int:
        return self._take(_INT)[0]

    def long(self) -> int:
        return self._take(_LONG)[0]

    def head(self) -> tuple[int, bool, int]:
        """Return code, whether it is the end, and error of the next result of several."""
        code, done, error = self._take(_HEAD)
        return code, bool(done), error

    def buffer(self) -> bytes:
        size = max(self.number(), 0)
        found = self._data[self._at : self._at + size]
        self._at += size
        return found

    def text(self) -> str:
        return self.buffer().decode()

    def texts(self) -> list[str]:
        return [self.text() for _ in range(self.number())]

    def stat(self) -> Stat:
        _, modified_in, _, modified_at, version, *_ = self._take(_STAT)
        return Stat(modified_in, modified_at, version)


def multi_results(reply: Reader) -> tuple[list[Stat | None], list[int]]:
    """Return the stats of a transaction's writes, and the errors of its operations: all OK, or it did nothing."""
    stats: list[Stat | None] = []
    errors: list[int] = []
    for code, error in _results(reply):
        errors.append(error)
        stats.append(reply.stat() if code == SET else None)
        if code == CREATE:
            reply.text()
    return stats, errors


def read_results(reply: Reader, one: Callable[[Reader], T]) -> list[T | None]:
    """Return the results of several reads; None for a node that is not there. Raise `ValueError` for other errors."""
    found: list[T | None] = []
    for code, error in _results(reply):
        if error not in (OK, NO_NODE):
            raise ValueError("a node may not be read by this user" if error == NO_AUTH else f"error {error}")
        found.append(one(reply) if code > 0 else None)
    return found


def _results(reply: Reader) -> Iterator[tuple[int, int]]:
    """Yield code and error of each result; its content is read before the next one is asked for."""
    while True:
        code, done, _ = reply.head()
        if done:
            return
        yield code, reply.number() if code == -1 else OK
