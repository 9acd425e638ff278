"""Documents and records that the floor writes, of the same shape and size as Solocron's, made by hand."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from solocron.clock import iso

__all__ = ["NODE", "Claimed", "claimed", "finished"]

NODE = "n1"
DAY = 86_400_000_000

_loads, _dumps = json.loads, json.JSONEncoder(separators=(",", ":")).encode


class Claimed:
    """One claimed document."""

    __slots__ = ("due", "fence", "key", "name", "run", "slot", "state", "version")

    def __init__(self, name: str, version: Any, state: str, session: str, now: int) -> None:
        self.name = name
        self.version = version
        doc = _loads(state)
        self.slot = doc["due"]
        self.due = self.slot + DAY
        self.fence = max(doc["f"] + 1, now // 1000)
        self.run = f"{name}@{hashlib.blake2b(f'{name}|{self.slot}'.encode(), digest_size=8).hexdigest()}"
        self.key = f"{name}@{iso(self.slot)}"
        doc["c"], doc["due"], doc["f"] = self.slot, self.due, self.fence
        doc["a"] = [[self.run, self.slot, "schedule", 1, 0, session, NODE, self.fence, now]]
        self.state = _dumps(doc)


def claimed(rows: list[tuple[Any, ...]], session: str, now: int) -> list[Claimed]:
    """`rows`: name, version, fixed text, state."""
    return [Claimed(row[0], row[1], row[3], session, now) for row in rows]


def finished(state: str, now: int) -> str:
    """The state after the hold is gone."""
    doc = _loads(state)
    hold = doc.pop("a")[0]
    doc["k"] = [*doc.get("k", ()), hold[7]][-4:]
    doc["l"] = [hold[0], hold[1], hold[3], "succeeded", now]
    return _dumps(doc)
