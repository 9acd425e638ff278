"""A fair queue for writers: who comes first writes first, and a turn that is not taken passes on after 100 ms.

SQLite's own waiting is a lottery in which a process in a tight loop wins every draw. So writers line up in a file
beside the database: each locks the byte of its ticket and goes when the byte before it is free. The kernel frees
the bytes of a process that dies; one that is frozen is passed over. Nothing depends on the queue but fairness: the
database's own lock and the versions in the rows decide what is written.

There are two queues in the file. Those who want what is due line up in one while they decide, so that no two decide
about the same documents; the other is for writing, which so never waits for a client that decides.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

__all__ = ["PATIENCE", "Turns"]

PATIENCE = 0.1
"""Seconds that each of those before us has for its turn."""

_QUEUE = 16
"""Bytes of the numbers of one queue: its tail, and who is being served."""
_NUMBERS = struct.Struct("=qq")
_NUMBER = struct.Struct("=q")
_FIRST = 4096
"""Tickets start here, beyond the numbers."""
_APART = 2**48
"""Between the first tickets of two queues: more than are ever drawn."""
_NAPS = (0.00005, 0.0001, 0.0002, 0.0004, 0.0008)

if hasattr(fcntl, "F_OFD_SETLK"):
    _SETLK = fcntl.F_OFD_SETLK

    def _flock(kind: int, start: int) -> bytes:
        # struct flock of 64-bit Linux: type, whence, start, length, pid (must be 0 for open-file-description locks)
        return struct.pack("hhlli4x", kind, os.SEEK_SET, start, 1, 0)

else:  # pragma: no cover - macOS: no locks that belong to a file description, so no order either
    _SETLK = 0


class Turns:
    """One connection's place in the queue; reused for every write, by one thread at a time."""

    def __init__(self, path: Path | None, queue: int = 0) -> None:
        self._at = queue * _QUEUE
        self._first = _FIRST + queue * _APART
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        # Without a file no process can line up, and a reader must not make one.
        self._file = -1 if path is None else os.open(path, flags, 0o600)
        self._ticket: int | None = None

    def close(self) -> None:
        """Leave the queue for good; closing frees the byte."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self._ticket = None

    @property
    def taken(self) -> bool:
        return self._ticket is not None

    def __enter__(self) -> Turns:
        """Wait for our turn; inside it already, go on."""
        if self._ticket is None and _SETLK:
            self._ticket = self._line_up()
            self._await(self._ticket)
            os.pwrite(self._file, _NUMBER.pack(self._ticket), self._at + _NUMBER.size)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.leave()

    def leave(self) -> None:
        """Let the next one go."""
        if self._ticket is not None:
            self._lock(fcntl.F_UNLCK, self._ticket)
            self._ticket = None

    def _line_up(self) -> int:
        """Take the first free ticket at the end of the queue."""
        ticket = max(self._numbers()[0], self._first)
        while not self._lock(fcntl.F_WRLCK, ticket):
            ticket += 1
        os.pwrite(self._file, _NUMBER.pack(ticket + 1), self._at)
        return ticket

    def _await(self, ticket: int) -> None:
        """Return when the one before us has gone, or has let its time pass."""
        serving = self._numbers()[1]
        since = time.monotonic()
        for nap in _naps():
            if self._is_free(ticket - 1):
                return
            seen = self._numbers()[1]
            if seen != serving:
                serving, since = seen, time.monotonic()
            elif time.monotonic() - since > PATIENCE * max(1, ticket - serving):
                return
            time.sleep(nap)

    def _is_free(self, ticket: int) -> bool:
        if ticket < self._first:
            return True
        free = self._lock(fcntl.F_RDLCK, ticket)
        if free:
            self._lock(fcntl.F_UNLCK, ticket)
        return free

    def _lock(self, kind: int, byte: int) -> bool:
        try:
            fcntl.fcntl(self._file, _SETLK, _flock(kind, byte))
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _numbers(self) -> tuple[int, int]:
        data = os.pread(self._file, _NUMBERS.size, self._at)
        tail, serving = _NUMBERS.unpack(data.ljust(_NUMBERS.size, b"\0"))
        return tail, serving


def _naps() -> Iterator[float]:
    yield from _NAPS
    while True:
        yield _NAPS[-1]
