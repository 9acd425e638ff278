"""Bounded output of a process: its first lines and its last, and how much between them was left out."""

from __future__ import annotations

__all__ = ["Output"]

LIMIT = 64 * 1024


class Output:
    """Takes any amount of bytes and keeps at most `limit` of them, half from the beginning, half from the end."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def __len__(self) -> int:
        """Number of bytes written, kept or not."""
        return len(self._head) + len(self._tail) + self._left_out

    def add(self, more: bytes) -> None:
        room = self._half - len(self._head)
        self._head += more[:room]
        self._tail += more[room:] if room > 0 else more
        over = len(self._tail) - self._half
        if over > 0:
            del self._tail[:over]
            self._left_out += over

    def text(self) -> str:
        """Return all that was kept; bytes that are not UTF-8 are escaped."""
        if not self._left_out:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
        return f"{head}\n[{self._left_out} bytes left out]\n{tail}"

    def end(self, size: int) -> str:
        """Return the last bytes, to show while it still runs."""
        return (self._head[-size:] + self._tail)[-size:].decode("utf-8", "replace")
