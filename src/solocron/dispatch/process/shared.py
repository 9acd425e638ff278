"""Memory that guard and worker share: until when the lease can be trusted, and whether to stop."""

from __future__ import annotations

import mmap
import struct

__all__ = ["Shared"]

_UNTIL = struct.Struct("dd")
_STOP = struct.Struct("BH")
_KINDS = ("", "lost", "timeout", "cancel", "shutdown")
_LONGEST = 1_000
_AT = 64


class Shared:
    """Made before the fork; the guard writes, the worker reads, neither ever waits."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)

    def trust(self, until: float) -> None:
        _UNTIL.pack_into(self._memory, 0, until, until)

    def trusted_until(self) -> float:
        """Return the trusted time. It is stored twice: while the two differ, the guard is writing it."""
        while True:
            one, two = _UNTIL.unpack_from(self._memory, 0)
            if one == two:
                return float(one)

    def stop(self, kind: str, reason: str) -> None:
        text = reason.encode()[:_LONGEST]
        start = _AT + _STOP.size
        self._memory[start : start + len(text)] = text
        _STOP.pack_into(self._memory, _AT, _KINDS.index(kind), len(text))

    def stopped(self) -> tuple[str, str] | None:
        """Return kind and reason of the stop, once there is one."""
        kind, size = _STOP.unpack_from(self._memory, _AT)
        if not kind:
            return None
        start = _AT + _STOP.size
        return _KINDS[kind], self._memory[start : start + size].decode("utf-8", "replace")
