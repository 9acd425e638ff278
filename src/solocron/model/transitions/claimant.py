"""The claimant of a run, its fence and patience, and the record that the end of a claim appends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from solocron.clock import MILLISECOND
from solocron.model._fast.next_slots import NextSlots
from solocron.model._fast.values import build
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Record, Status, key_of
from solocron.model.documents.scoped_pause import KeptBack, ScopedPause, kept_back
from solocron.model.documents.session import Session

__all__ = ["Claimant", "next_fence", "patience_of", "record_of", "stopping_since", "stuck_since"]


def _unknown(handler: str) -> str | None:
    return None


def _anything(handler: str) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimant:
    """The claiming node, and how long a slot counts as late before it is missed.

    `alone`: no other node lives. `sessions` and `permit` are fetched for a job that `Needs` them.
    """

    session: str
    node: str
    late_for: int
    alone: bool = True
    sessions: tuple[Session, ...] | None = None
    permit: str | None = None
    spare: bool = True
    """True if this node has a place left for a backfill."""
    application: Callable[[str], str | None] = _unknown
    """Returns the application from which this node has a handler of that name."""
    next_slots: NextSlots = field(default_factory=NextSlots, compare=False, repr=False)
    """Slots computed for the job before; the claimer passes the same one to each claim."""
    pauses: tuple[ScopedPause, ...] = ()
    """Pauses of many jobs at once, in the state that the claim's commit compares."""
    carriers: Mapping[str, bool] = field(default_factory=dict)
    """Carriers that this node can publish with, and whether a worker picks up what they carry."""
    has: Callable[[str], bool] = _anything
    """Returns whether this process has a handler of that name; a worker learns it only from the document."""

    def kept_back(self, job: Job, now: int) -> KeptBack:
        """Return what of the job these pauses keep from starting now."""
        return kept_back(self.pauses, job, now=now) if self.pauses else KeptBack.NOTHING


def next_fence(last: int, now: int) -> int:
    """Return a fence above every fence granted so far.

    This holds across removal and restore too, as long as the store's clock is not behind.
    """
    return max(last + 1, now // MILLISECOND)


def patience_of(definition: Definition, late_for: int) -> int:
    """Return how long after its instant a slot may still start before it is missed."""
    limit = definition.start_within
    return late_for if limit is None else min(late_for, limit + 1)


def stopping_since(hold: Hold, *, now: int) -> int | None:
    """Return since when its body is being stopped (on request, or by its deadline); None while it may run."""
    moments = [moment for moment in (hold.asked_at, hold.deadline) if moment is not None and moment <= now]
    return min(moments, default=None)


def stuck_since(hold: Hold, *, lease: int, now: int) -> int | None:
    """Return since when its body is being stopped, if that is more than a lease ago: a thread that ignores it.

    Within a lease the holder has learnt of the request with a renewal, and its body has had time to end.
    """
    since = stopping_since(hold, now=now)
    return since if since is not None and now > since + lease else None


def record_of(
    job: Job,
    hold: Hold,
    status: Status,
    *,
    now: int,
    reason: str | None = None,
    started_at: int | None = None,
    finished_at: int | None = None,
    error: str | None = None,
    result: str | None = None,
    progress: str | None = None,
) -> Record:
    """Return the record of an attempt that ends now; the optional fields are those that its end adds."""
    return build(
        Record,
        run=hold.run,
        job=job.name,
        attempt=hold.attempt,
        slot=hold.slot,
        first=hold.slot,
        origin=hold.origin,
        status=status,
        key=key_of(job.name, hold.origin, hold.slot, hold.request, hold.shard),
        recorded_at=now,
        node=hold.node,
        session=hold.session,
        fence=hold.fence,
        claimed_at=hold.claimed_at,
        reason=reason,
        started_at=started_at,
        finished_at=finished_at,
        error=error,
        result=result,
        progress=progress,
        asked_by=hold.asked_by,
        note=hold.note,
    )
