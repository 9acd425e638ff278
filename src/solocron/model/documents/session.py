"""A node's lease: one small document, renewed by one write. Burial is its only death."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from solocron.model.change import Absent, Change

__all__ = ["Life", "Session", "begin", "bury", "end", "is_live", "renew", "swept"]


class Life(StrEnum):
    """live, then dead (buried, holds still to be taken over), then swept (nothing names it any more)."""

    LIVE = "live"
    DEAD = "dead"
    SWEPT = "swept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Who a node is and until when its claims stand."""

    name: str
    node: str
    host: str
    pid: int
    pools: tuple[str, ...] = ("default",)
    handlers: tuple[str, ...] | None = ()
    """What it can run; None where that are too many to list."""
    applications: tuple[tuple[str, tuple[str, ...] | None], ...] = ()
    """The applications that its handlers come from, and the handlers of each; None: all that no other one names.

    Empty for a node of a release that did not say.
    """
    version: str = ""
    fingerprint: str = ""
    revision: int | None = None
    zone_data: str = ""
    lease: int
    keep: int | None = None
    """For how long its node keeps records, in microseconds; None where it did not say."""
    started_at: int = 0
    expires_at: int = 0
    beats: int = 0
    """How often it was renewed: after a step of the store's clock the expiry alone would not show it."""
    running: int = 0
    epoch: str = ""
    """The epoch that its node has checked (`model/documents/namespace.py`)."""
    state: Life = Life.LIVE
    ended_at: int | None = None
    reason: str | None = None


def begin(doc: Session | Absent, session: Session, *, now: int) -> Change | None:
    """A new session; its id is random and never reused, so one that exists is our own repeated request."""
    if isinstance(doc, Session):
        return Change(doc) if doc.state is Life.LIVE else None
    return Change(replace(session, started_at=now, expires_at=now + session.lease))


def renew(
    doc: Session | Absent,
    *,
    now: int,
    running: int = 0,
    seen: int = 0,
    number: int | None = None,
    epoch: str | None = None,
    lift: bool = False,
) -> Change | None:
    """Only burial ends a session; a late renewal counts until then. It sets the expiry, never adds to it.

    `seen` are the beats that the store has acknowledged: a document with fewer is an old one that has come back, and is
    left as it is, unless its node has noticed and wants to `lift` it. `epoch` marks the session with an epoch that its
    node has checked.

    `number` is the count that this renewal writes, given to it when it was sent. Were it the document's own count plus
    one, a renewal that was late could lift an old document to the count that was acknowledged, and hide that the store
    went back.
    """
    if isinstance(doc, Absent) or doc.state is not Life.LIVE or (doc.beats < seen and not lift):
        return None
    if number is not None and doc.beats >= number:
        return None
    beats, marked = number or doc.beats + 1, doc.epoch if epoch is None else epoch
    return Change(replace(doc, expires_at=now + doc.lease, beats=beats, running=running, epoch=marked))


def is_live(doc: Session, *, now: int) -> bool:
    """Return whether its lease has not run out by the store's clock."""
    return doc.state is Life.LIVE and doc.expires_at > now


def bury(doc: Session | Absent, *, now: int, reason: str, seen: int | None = None) -> Change | None:
    """live to dead; `seen` are the beats that the sweeper counted: one renewed since is left alone."""
    if isinstance(doc, Absent) or doc.state is not Life.LIVE:
        return None
    if seen is not None and (doc.beats != seen or doc.expires_at > now):
        return None
    return Change(replace(doc, state=Life.DEAD, ended_at=now, reason=reason))


def swept(doc: Session | Absent, *, now: int) -> Change | None:
    """dead to swept, after a pass over its holds that skipped nothing."""
    if isinstance(doc, Absent) or doc.state is not Life.DEAD:
        return None
    return Change(replace(doc, state=Life.SWEPT))


def end(doc: Session | Absent, *, now: int, reason: str) -> Change | None:
    """The node's own goodbye, said when no body is left; the sweep looks after whatever it may still hold."""
    if isinstance(doc, Absent) or doc.state is not Life.LIVE:
        return None
    return Change(replace(doc, state=Life.DEAD, expires_at=min(doc.expires_at, now), ended_at=now, reason=reason))
