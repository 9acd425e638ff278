"""Permits of a limit across jobs: one small document for each run that may run at once, held by one session or free.

A run of a job with `limit="db-heavy:2"` is claimed only by a node that has taken one of the two permits. The permit of
a dead session is free again once the session is swept. A permit is never shared, so there are never more runs than
permits.
"""

from __future__ import annotations

from typing import Any

from solocron.clock import SECOND
from solocron.model.change import Absent, Change, Kind, SmallDocument

__all__ = ["ASKED", "MOST", "free", "give", "limit_of", "names_of", "orphan", "parse", "take", "turn_of"]

MOST = 256
"""Maximum number of permits of a limit."""
ASKED = 4 * SECOND
"""How long an unsuccessful request is remembered. Releasing the permit within that time notifies the waiting nodes."""


def parse(limit: str) -> tuple[str, int]:
    """Return name and number of `name:number`, which was checked when it was declared."""
    name, _, most = limit.rpartition(":")
    return name, int(most)


def names_of(limit: str) -> tuple[str, ...]:
    """Return the names of the documents of a limit's permits."""
    name, most = parse(limit)
    return tuple(f"{name}:{index}" for index in range(most))


def limit_of(permit: str) -> str:
    """Return the limit's name from a permit's."""
    return permit.rpartition(":")[0]


def free(doc: SmallDocument | Absent) -> bool:
    """Return whether the permit is free."""
    return isinstance(doc, Absent) or doc.session is None


def turn_of(doc: SmallDocument) -> int:
    """Return the number of this acquisition within its session."""
    turn: int = doc.body.get("turn", 0)
    return turn


def take(doc: SmallDocument | Absent, *, session: str, node: str, turn: int, now: int) -> Change | None:
    """Take the permit if it is free. The answer is True if it is ours.

    An unsuccessful request leaves a mark, now and then, so that a release notifies the waiting nodes.
    """
    if isinstance(doc, SmallDocument) and doc.session == session and turn_of(doc) == turn:
        return Change(doc, answer=True)  # our own request, whose reply was lost
    if free(doc):
        body: dict[str, Any] = {"node": node, "since": now, "turn": turn}
        return Change(SmallDocument(kind=Kind.PERMIT, name=doc.name, body=body, session=session), answer=True)
    assert isinstance(doc, SmallDocument)
    if doc.body.get("asked", 0) > now + ASKED // 2:
        return Change(doc, answer=False)
    body = {**doc.body, "asked": now + ASKED}
    return Change(SmallDocument(kind=doc.kind, name=doc.name, body=body, session=doc.session), answer=False)


def give(doc: SmallDocument | Absent, *, session: str, now: int, turn: int | None = None) -> Change | None:
    """Release the permit. The answer is True if a node has requested it since.

    None: it is not, or no longer, what this session took.
    """
    if isinstance(doc, Absent) or doc.session != session or turn not in (None, turn_of(doc)):
        return None
    return Change(SmallDocument(kind=doc.kind, name=doc.name, body={}), answer=doc.body.get("asked", 0) > now)


def orphan(doc: SmallDocument | Absent, *, session: str, now: int) -> Change | None:
    """Free the permit of a buried session."""
    return give(doc, session=session, now=now)
