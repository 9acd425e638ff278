"""Permits of a limit across jobs: as many small documents as may run at once, each held by one session or by nobody.

A run of a job with `limit="db-heavy:2"` is claimed only by a node that has taken one of the two permits; what a dead
session held is free again once it is swept. A permit is never shared, so there are never more runs than permits.
"""

from __future__ import annotations

from typing import Any

from solocron.clock import SECOND
from solocron.model.change import Absent, Change, Kind, SmallDocument

__all__ = ["ASKED", "MOST", "free", "give", "limit_of", "names_of", "orphan", "parse", "take", "turn_of"]

MOST = 256
"""How many permits a limit may have."""
ASKED = 4 * SECOND
"""How long somebody who asked in vain is remembered, so that whoever gives the permit back wakes the others."""


def parse(limit: str) -> tuple[str, int]:
    """The name and the number of `name:number`, which was checked when it was declared."""
    name, _, most = limit.rpartition(":")
    return name, int(most)


def names_of(limit: str) -> tuple[str, ...]:
    """The documents of a limit's permits."""
    name, most = parse(limit)
    return tuple(f"{name}:{index}" for index in range(most))


def limit_of(permit: str) -> str:
    """The limit's name inside a permit's."""
    return permit.rpartition(":")[0]


def free(doc: SmallDocument | Absent) -> bool:
    """Whether nobody holds it."""
    return isinstance(doc, Absent) or doc.session is None


def turn_of(doc: SmallDocument) -> int:
    """Which taking of its session it was."""
    turn: int = doc.body.get("turn", 0)
    return turn


def take(doc: SmallDocument | Absent, *, session: str, node: str, turn: int, now: int) -> Change | None:
    """Hold the permit if nobody does; answers whether it is ours. In vain it leaves a mark, now and then."""
    if isinstance(doc, SmallDocument) and doc.session == session and turn_of(doc) == turn:
        return Change(doc, answer=True)  # our own request, its answer lost on the way
    if free(doc):
        body: dict[str, Any] = {"node": node, "since": now, "turn": turn}
        return Change(SmallDocument(kind=Kind.PERMIT, name=doc.name, body=body, session=session), answer=True)
    assert isinstance(doc, SmallDocument)
    if doc.body.get("asked", 0) > now + ASKED // 2:
        return Change(doc, answer=False)
    body = {**doc.body, "asked": now + ASKED}
    return Change(SmallDocument(kind=doc.kind, name=doc.name, body=body, session=doc.session), answer=False)


def give(doc: SmallDocument | Absent, *, session: str, now: int, turn: int | None = None) -> Change | None:
    """Give it back; answers whether somebody asked for it. None: it is not what this session took (any more)."""
    if isinstance(doc, Absent) or doc.session != session or turn not in (None, turn_of(doc)):
        return None
    return Change(SmallDocument(kind=doc.kind, name=doc.name, body={}), answer=doc.body.get("asked", 0) > now)


def orphan(doc: SmallDocument | Absent, *, session: str, now: int) -> Change | None:
    """What a buried session held is free."""
    return give(doc, session=session, now=now)
