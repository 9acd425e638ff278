"""Locks that this client has just taken: letting one go is a single call, which needs no look at it before.

Most locks are released by the client that took them, from the very document that its taking left. Each is used once,
and only for some seconds; the server compares the document and the time, so what is remembered can only be refused.
"""

from __future__ import annotations

from collections.abc import Callable

from solocron.clock import MILLISECOND, SECOND
from solocron.model.change import Kind, Note
from solocron.stores.contract import Named, Which
from solocron.stores.redis.drafts import Draft
from solocron.stores.redis.wire import Row

__all__ = ["RecentNotes"]

_MOST = 1_000
_YOUNG = 5.0
"""Seconds. Later on our idea of the server's time would not be good enough."""
_WINDOW = 20 * MILLISECOND
"""How far behind that idea may be."""


class RecentNotes:
    """Locks by name. Every step is one operation on a dictionary, so threads need no lock."""

    def __init__(self, boot: Callable[[], float]) -> None:
        self._boot = boot
        self._kept: dict[str, tuple[Row, int, float]] = {}

    def put(self, kind: Kind, one: Draft, facts: str) -> None:
        """Keep a lock that was written and is held now; `facts` is the server's answer."""
        doc = one.change.doc if one.change is not None else None
        if kind is not Kind.LOCK or not isinstance(doc, Note) or doc.body.get("token") is None or not one.words:
            return
        _, _, _, version, time = facts.split(" ")
        fixed, state, holders = one.words[4:7]
        if len(self._kept) >= _MOST:
            self._kept.clear()
        self._kept[one.name] = (Row(one.name, f"{version}  {holders}", fixed, state), int(time), self._boot())

    def take(self, which: Which) -> tuple[Row, int, tuple[int, int]] | None:
        """A lock as it was written, once: a time that the server has surely reached, and when that is right."""
        if not isinstance(which, Named) or which.kind is not Kind.LOCK or len(which.names) != 1:
            return None
        found = self._kept.pop(which.names[0], None)
        if found is None:
            return None
        row, server, boot = found
        passed = self._boot() - boot
        if passed > _YOUNG:
            return None
        # No clock runs slower than another by more than a thousandth.
        now = server + int(passed * SECOND * 0.999)
        return row, now, (now, now + _WINDOW)
