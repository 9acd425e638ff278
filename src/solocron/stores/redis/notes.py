"""Locks that this client has just taken, and sessions that it keeps: one call each, which needs no look before it.

Most locks are released by the client that took them, from the very document that its taking left, and a session is
renewed by nobody else. Each is used once, and only for a while; the server compares the document and the time, so what
is remembered can only be refused.
"""

from __future__ import annotations

from collections.abc import Callable

from solocron.clock import MILLISECOND, SECOND
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.session import Life, Session
from solocron.stores.contract import Named, Which
from solocron.stores.redis.drafts import Draft
from solocron.stores.redis.wire import Row
from solocron.stores.server_time import surely_reached

__all__ = ["RecentSmallDocuments"]

_MOST = 1_000
_YOUNG = 5.0
"""Seconds. Later on our idea of the server's time would not be good enough."""
_WINDOW = 20 * MILLISECOND
"""How far behind that idea may be; of a session, a small part of its margin of trust."""


class RecentSmallDocuments:
    """Locks and sessions by name. Every step is one operation on a dictionary, so threads need no lock."""

    def __init__(self, boot: Callable[[], float]) -> None:
        self._boot = boot
        self._kept: dict[tuple[Kind, str], tuple[Row, int, float, float, int]] = {}

    def put(self, kind: Kind, one: Draft, facts: str) -> None:
        """Keep a lock that was written and is held now, or a session that lives; `facts` is the server's answer."""
        doc = one.change.doc if one.change is not None else None
        if not one.words:  # nothing that belongs here, or nothing was written
            return
        if kind is Kind.LOCK and isinstance(doc, SmallDocument) and doc.body.get("token") is not None:
            fixed, state, holders = one.words[4:7]
            young, window = _YOUNG, _WINDOW
        elif isinstance(doc, Session) and doc.state is Life.LIVE:
            fixed, state, holders = *one.words[4:6], ""
            young, window = doc.lease / SECOND, doc.lease // 50
        else:
            return
        _, _, _, version, time, _, _ = facts.split(" ")
        if len(self._kept) >= _MOST:
            self._kept.clear()
        row = Row(one.name, f"{version}  {holders}", fixed, state)
        self._kept[kind, one.name] = (row, int(time), self._boot(), young, window)

    def take(self, which: Which) -> tuple[Row, int, tuple[int, int]] | None:
        """One as it was written, once: a time that the server has surely reached, and when that is right."""
        if not isinstance(which, Named) or len(which.names) != 1:
            return None
        found = self._kept.pop((which.kind, which.names[0]), None)
        if found is None:
            return None
        row, told, boot, young, window = found
        passed = self._boot() - boot
        if passed > young:
            return None
        now = surely_reached(told, passed)
        return row, now, (now, now + window)
