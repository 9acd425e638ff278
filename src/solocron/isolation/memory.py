"""How much memory a process and everything that it started have in use: their resident sets, added up (Linux)."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["resident"]

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident(pid: int) -> int:
    """Bytes; 0 where the system does not tell. Pages that a fork shares with its parent count for both."""
    total, left, seen = 0, [pid], set()
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        try:
            total += int(Path(f"/proc/{one}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/children", encoding="ascii") as children:
                    left += map(int, children.read().split())
        except (OSError, IndexError, ValueError):
            continue  # it ended while we looked, or there is no /proc
    return total
