"""Holders of locks, since when and until when; and the forced release, which is recorded and raises the fence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from solocron.author import check_author
from solocron.clock import from_us
from solocron.effects.locks.writing import write
from solocron.errors import ConflictError, InvalidError, NotFoundError
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.lock import LockState, force, raise_fence, state_of
from solocron.model.documents.session import Life, Session
from solocron.runtime import Runtime
from solocron.stores.contract import Store
from solocron.stores.paging import iter_documents, read_sessions

__all__ = ["LockView", "are_raised", "force_release", "list_locks", "raise_fences"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockView:
    """State of a lock: `held`, `kept` (released inside its at_least), `free`, `orphaned` (its holder is dead)."""

    name: str
    state: str
    owner: str | None
    since: datetime | None
    until: datetime | None
    """None while it is tied to a session."""
    fence: int
    session: str | None
    waiting: int
    forced: tuple[Mapping[str, Any], ...]
    """The last forced releases: at, by, why, owner, fence."""


def list_locks(store: Store) -> list[LockView]:
    """Return every lock that was ever taken in this namespace, by name."""
    sessions = {session.name: session for session in read_sessions(store)}
    now = store.clock()
    return [_view(doc, state_of(doc), sessions, now) for doc in iter_documents(store, Kind.LOCK)]


def force_release(store: Store, runtime: Runtime, name: str, *, reason: str, by: str | None = None) -> LockView:
    """Take a lock away from its holder, which finds out at its next write or check."""
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidError(f"lock {name!r}: say why it is released by force; nothing was changed.")
    check_author(by, reason, undone="nothing was changed", called="reason")
    result, _ = write(
        store, Kind.LOCK, name, lambda doc, at: force(doc, by=by, why=reason, now=at), runtime=runtime, ward=None
    )
    if result.verdict != "applied":
        if not isinstance(result.doc, SmallDocument):
            raise NotFoundError(
                f"there is no lock {name!r} in namespace {store.namespace!r}; `solocron locks` lists them."
            )
        raise ConflictError(f"lock {name!r} is not held; nothing was changed.")
    if result.answer:
        store.signal()
    return next(view for view in list_locks(store) if view.name == name)


def raise_fences(store: Store, runtime: Runtime, fence: int) -> frozenset[str]:
    """Raise every lock's fence after a backup was restored, above what may have been granted since the backup.

    Returns the names of the locks.
    """
    names = frozenset(note.name for note in iter_documents(store, Kind.LOCK))
    for name in sorted(names):
        write(store, Kind.LOCK, name, lambda doc, at: raise_fence(doc, fence=fence), runtime=runtime, ward=None)
    return names


def are_raised(store: Store, names: frozenset[str], fence: int) -> bool:
    """Return whether each of these locks that is there has this fence or a higher one."""
    return all(state_of(note).fence >= fence for note in iter_documents(store, Kind.LOCK) if note.name in names)


def _view(doc: SmallDocument, state: LockState, sessions: Mapping[str, Session], now: int) -> LockView:
    session = sessions.get(state.session or "")
    taken = state.taken(now=now)
    if state.session is not None and (session is None or session.state is not Life.LIVE):
        shown = "orphaned"
    else:
        shown = ("held" if state.token else "kept") if taken else "free"
    return LockView(
        name=doc.name,
        state=shown,
        owner=state.owner if shown != "free" else None,
        since=from_us(state.since) if taken and state.since is not None else None,
        until=from_us(state.until) if taken and state.until is not None else None,
        fence=state.fence,
        session=state.session,
        waiting=sum(1 for _, until in state.waiting if until > now),
        forced=tuple({**one, "at": from_us(one["at"])} for one in state.forced),
    )
