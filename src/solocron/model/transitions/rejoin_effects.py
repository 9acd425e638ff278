"""After the store went back: put back a lock, a key or the steps of a run as a live process remembers them."""

from __future__ import annotations

from solocron.model._fast.values import replace
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents import key, lock
from solocron.model.documents.key import Stand, stand_of
from solocron.model.documents.lock import state_of

__all__ = ["rejoin_effect"]


def rejoin_effect(doc: SmallDocument | Absent, kept: SmallDocument, *, session: str | None, now: int) -> Change | None:
    """Bring a document to what this process wrote last; None if it lacks nothing of it.

    `session` is the process's present one. What an earlier session of it held has no holder any more: a lock is free,
    an open key uncertain.
    """
    if kept.session not in (None, session):
        orphan = lock.orphan if kept.kind is Kind.LOCK else key.orphan
        given_up = orphan(kept, session=kept.session or "", now=now)
        if given_up is None or not isinstance(given_up.doc, SmallDocument):
            return None
        kept = given_up.doc
    rejoin = {Kind.STEP: _steps, Kind.KEY: _key, Kind.LOCK: _lock}[kept.kind]
    new = rejoin(doc, kept)
    return None if new is None or new == doc else Change(new)


def _steps(doc: SmallDocument | Absent, kept: SmallDocument) -> SmallDocument:
    """Return both together: a step has one result forever, and the first that was saved stands."""
    if isinstance(doc, Absent):
        return kept
    known = {name for name, _, _ in doc.body["steps"]}
    steps = [*doc.body["steps"], *(step for step in kept.body["steps"] if step[0] not in known)]
    fence = max(doc.body["fence"], kept.body["fence"])
    if len(steps) == len(known) and fence == doc.body["fence"]:
        return doc
    return replace(doc, body={"fence": fence, "steps": steps, "at": max(doc.body["at"], kept.body["at"])})


def _key(doc: SmallDocument | Absent, kept: SmallDocument) -> SmallDocument | None:
    """Return the further of both: done is further than begun, a later beginning than an earlier one."""
    if isinstance(doc, Absent):
        return kept
    if stand_of(doc) is Stand.DONE:
        return None
    if doc.body["token"] == kept.body["token"]:
        return kept if stand_of(kept) is Stand.DONE else None
    return kept if kept.body["since"] >= doc.body["since"] else None


def _lock(doc: SmallDocument | Absent, kept: SmallDocument) -> SmallDocument | None:
    """Return the later grant, by its fence. Of one grant, its release is later."""
    theirs, ours = state_of(doc), state_of(kept)
    released = theirs.fence == ours.fence and theirs.token is not None and ours.token is None
    return kept if ours.fence > theirs.fence or released else None
