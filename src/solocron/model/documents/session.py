"""A node's lease: one small document, renewed by one write. Burial is its only death.

The progress of a node's runs rides in its session with the renewal, so that it costs no write of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from solocron.model.change import Absent, Change

__all__ = [
    *(
        "FEATURES",
        "NO_REPORT",
        "OFFERS",
        "REFUSED",
        "Life",
        "Progress",
        "RefusedEnd",
        "Session",
        "SelfReport",
        "begin",
        "bury",
        "end",
    ),
    *("is_live", "progress_of", "renew", "swept", "trimmed_progress"),
]


OFFERS = "offers"
"""Feature: leaves a run that a carrier has alone until its offer lapses."""
FEATURES = (OFFERS,)
"""What this version knows of stored documents beyond the first form. A session lists it, so that a definition that an
older node would misread is written only when no such node lives; a version number would not tell what it knows."""


class Life(StrEnum):
    """States of a session: live, then dead (buried, its holds to be taken over), then swept (nothing names it)."""

    LIVE = "live"
    DEAD = "dead"
    SWEPT = "swept"


Progress = tuple[tuple[str, int, str], ...]
"""Run, fence and progress (JSON) of each run that has reported any."""

PROGRESS_BYTES = 200
"""The size of one run's progress in a session: a session with hundreds of runs is still one small write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedEnd:
    """An end of a run that the store did not accept: another node had taken the run over by then."""

    run: str
    fence: int
    at: int
    """Store time at which its node learnt it."""
    outcome: str
    """How the run would have ended: a status, or `handed back`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfReport:
    """Facts that a process tells of itself with each renewal, at no further write. Nothing is decided by them."""

    skew: int | None = None
    """Its wall clock less the store's clock, in microseconds, to a millisecond; None if it is not known."""
    late_by: int = 0
    """How much later than planned its latest late renewal was sent, in microseconds; 0 if none was."""
    late_at: int | None = None
    """Store time of that renewal."""
    refused: tuple[RefusedEnd, ...] = ()
    """The last ends that were refused, oldest first, at most `REFUSED`."""


REFUSED = 16
NO_REPORT = SelfReport()


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Identity of a node, and the time until which its claims stand."""

    name: str
    node: str
    host: str
    pid: int
    pools: tuple[str, ...] = ("default",)
    handlers: tuple[str, ...] | None = ()
    """Handlers this node can run; None if there are too many to store in the session."""
    applications: tuple[tuple[str, tuple[str, ...] | None], ...] = ()
    """Applications of its handlers, with the handlers of each; None: all that no other application names.

    Empty if the node did not say.
    """
    version: str = ""
    fingerprint: str = ""
    revision: int | None = None
    zone_data: str = ""
    lease: int
    keep: int | None = None
    """How long its node keeps records, in microseconds; None if it did not say."""
    started_at: int = 0
    expires_at: int = 0
    beats: int = 0
    """Number of renewals. After a step of the store's clock the expiry alone would not show a renewal."""
    running: int = 0
    max_running: int | None = None
    """How many runs its node has at once at most; None if it did not say, or runs none."""
    features: tuple[str, ...] = ()
    """Those of `FEATURES` that its node knows."""
    progress: Progress = ()
    """The progress of its runs as of the last renewal, each trimmed by `trimmed_progress`."""
    epoch: str = ""
    """Epoch that its node has checked (`model/documents/namespace.py`)."""
    report: SelfReport = NO_REPORT
    state: Life = Life.LIVE
    ended_at: int | None = None
    reason: str | None = None
    buried_by: str | None = None
    """Name of the node that has buried it; None if it lives, or if its own process closed it."""


def begin(doc: Session | Absent, session: Session, *, now: int) -> Change | None:
    """Create a session. Its id is random and never reused, so one that exists is our own repeated request."""
    if isinstance(doc, Session):
        return Change(doc) if doc.state is Life.LIVE else None
    return Change(replace(session, started_at=now, expires_at=now + session.lease))


def renew(
    doc: Session | Absent,
    *,
    now: int,
    running: int = 0,
    progress: Progress | None = None,
    seen: int = 0,
    number: int | None = None,
    epoch: str | None = None,
    lift: bool = False,
    report: SelfReport | None = None,
) -> Change | None:
    """Renew a session that is not buried, even if late: only burial ends it. Sets the expiry, never adds to it.

    `seen` is the number of renewals that the store has acknowledged. A document with fewer is an old one that has come
    back; it is left as it is, unless its node has noticed that and asks to `lift` it. `epoch` marks the session with an
    epoch that its node has checked.

    `number` is the count that this renewal writes, fixed when it was sent. The obvious choice, the document's own count
    plus one, would be wrong: a delayed renewal could lift an old document to the acknowledged count and hide that the
    store went back.
    """
    if isinstance(doc, Absent) or doc.state is not Life.LIVE or (doc.beats < seen and not lift):
        return None
    if number is not None and doc.beats >= number:
        return None
    beats, marked = number or doc.beats + 1, doc.epoch if epoch is None else epoch
    told = doc.progress if progress is None else progress
    new = replace(doc, expires_at=now + doc.lease, beats=beats, running=running, progress=told, epoch=marked)
    return Change(new if report is None else replace(new, report=report))


def is_live(doc: Session, *, now: int) -> bool:
    """Return whether its lease has not expired by the store's clock."""
    return doc.state is Life.LIVE and doc.expires_at > now


def progress_of(doc: Session | Absent) -> Mapping[tuple[str, int], str]:
    """Return the progress that a session reports, by run and fence."""
    return {} if isinstance(doc, Absent) else {(run, fence): text for run, fence, text in doc.progress}


def trimmed_progress(progress: Mapping[str, Any]) -> str:
    """Return a run's progress as JSON of at most `PROGRESS_BYTES`; long texts keep their last characters."""
    text = _compact(progress)
    if len(text) <= PROGRESS_BYTES:
        return text
    facts = dict(progress)
    for name in sorted(facts, key=lambda name: name != "output"):  # what it printed is the first to be shortened
        value = facts[name]
        if isinstance(value, str):
            over = len(_compact(facts)) - PROGRESS_BYTES
            while value and over > 0:
                value = value[max(1, over // 6) :]
                facts[name] = value
                over = len(_compact(facts)) - PROGRESS_BYTES
    while len(_compact(facts)) > PROGRESS_BYTES:
        facts.popitem()
    return _compact(facts)


def _compact(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def bury(
    doc: Session | Absent, *, now: int, reason: str, seen: int | None = None, by: str | None = None
) -> Change | None:
    """Mark a live session as dead, and `by` as the node that did it.

    `seen` is its number of renewals as the sweeper saw it: one renewed since is left alone.
    """
    if isinstance(doc, Absent) or doc.state is not Life.LIVE:
        return None
    if seen is not None and (doc.beats != seen or doc.expires_at > now):
        return None
    return Change(replace(doc, state=Life.DEAD, ended_at=now, reason=reason, buried_by=by))


def swept(doc: Session | Absent, *, now: int) -> Change | None:
    """Mark a dead session as swept, after a pass over its holds that skipped nothing."""
    if isinstance(doc, Absent) or doc.state is not Life.DEAD:
        return None
    return Change(replace(doc, state=Life.SWEPT, progress=()))


def end(doc: Session | Absent, *, now: int, reason: str) -> Change | None:
    """Close a session for its node, when no body is left. The sweeper deals with whatever it may still hold."""
    if isinstance(doc, Absent) or doc.state is not Life.LIVE:
        return None
    return Change(replace(doc, state=Life.DEAD, expires_at=min(doc.expires_at, now), ended_at=now, reason=reason))
