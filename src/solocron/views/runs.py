"""`RunView`: an attempt, a run that waits, or slots that did not run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from solocron.clock import SECOND, from_us, iso
from solocron.model.documents.job import Hold, Job, WaitingRun
from solocron.model.documents.offer import Offer
from solocron.model.documents.run import Record, Status, shard_of
from solocron.model.documents.session import Life, Session, is_live
from solocron.model.transitions.claimant import record_of, stopping_since, stuck_since

__all__ = ["WAITING", "HoldView", "RunView", "moment"]

WAITING = "waiting"
"""Status of a run that is not yet claimed; the log has no such status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One attempt of a run, a run that waits, or slots that did not run (`count` of them, from `first` to `slot`)."""

    run: str
    job: str
    slot: datetime
    attempt: int
    status: str
    reason: str | None
    node: str | None
    fence: int
    origin: str
    key: str
    claimed_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    result: Any
    progress: Mapping[str, Any] | None
    output: str | None
    """Output of a process of its own, bounded; while it runs the last lines."""
    first: datetime
    count: int
    shard: str | None
    """The shard of its slot, where the job is sharded."""
    asked_by: str | None = None
    """Who asked for it, if a person or a program did and said so."""
    note: str | None = None
    """Why, in their words."""
    deadline: datetime | None = None
    """End of the timeout of a running attempt."""
    stopping: str | None = None
    """Reason why the body of a running attempt is being stopped."""
    stopping_since: datetime | None = None
    stuck: bool = False
    """True if its body still runs more than a lease after it was asked to stop."""
    carrier: str | None = None
    """The queue in which its message waits, while no worker has picked it up."""

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.run

    @classmethod
    def of(cls, record: Record) -> RunView:
        """Make the view of a record."""
        said: dict[str, Any] = {} if record.progress is None else json.loads(record.progress)
        output = said.pop("output", None)
        return cls(
            run=record.run,
            job=record.job,
            slot=from_us(record.slot),
            attempt=record.attempt,
            status=str(record.status),
            reason=record.reason,
            node=record.node,
            fence=record.fence,
            origin=str(record.origin),
            key=record.key,
            claimed_at=moment(record.claimed_at),
            started_at=moment(record.started_at),
            finished_at=moment(record.finished_at),
            error=record.error,
            result=None if record.result is None else json.loads(record.result),
            progress=said or None,
            output=output,
            first=from_us(record.slot if record.first is None else record.first),
            count=record.count,
            shard=record.key.rpartition("#")[2] if shard_of(record.run) else None,
            asked_by=record.asked_by,
            note=record.note,
        )

    @classmethod
    def waiting(cls, job: str, waiting_run: WaitingRun, key: str) -> RunView:
        """Make the view of a run that waits to be claimed, or whose message waits to be picked up."""
        where = where_offered(waiting_run)
        reason = (
            f"attempt {waiting_run.attempt} at {iso(waiting_run.ready_at)}"
            if waiting_run.attempt > 1
            else f"from {iso(waiting_run.ready_at)}"
        )
        return cls(
            run=waiting_run.run,
            job=job,
            slot=from_us(waiting_run.slot),
            attempt=waiting_run.attempt,
            status=WAITING if where is None else Status.OFFERED,
            reason=where or _not_offered(waiting_run.offer, reason),
            node=None,
            fence=0,
            origin=str(waiting_run.origin),
            key=key,
            claimed_at=None,
            started_at=None,
            finished_at=None,
            error=None,
            result=None,
            progress=None,
            output=None,
            first=from_us(waiting_run.slot),
            count=1,
            shard=None if waiting_run.shard is None else str(waiting_run.shard),
            asked_by=waiting_run.asked_by,
            note=waiting_run.note,
            carrier=None if where is None or waiting_run.offer is None else waiting_run.offer.carrier,
        )

    def held(self, hold: Hold, *, lease: int | None, now: int) -> RunView:
        """Add what a hold says of a running attempt; `lease` is that of a live holder."""
        since = stopping_since(hold, now=now)
        late = since is not None and since == hold.deadline
        return replace(
            self,
            deadline=moment(hold.deadline),
            stopping="still running at its deadline" if late else hold.cancel,
            stopping_since=moment(since),
            stuck=lease is not None and stuck_since(hold, lease=lease, now=now) is not None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldView(RunView):
    """A running attempt and the lease under which it runs: the node, its session, the fence, and what is left of it."""

    session: str
    lease_left_s: float | None
    """Seconds until the lease of its session ends; below 0 it is past. None if the session is buried or gone."""

    @classmethod
    def of_hold(
        cls, job: Job, hold: Hold, session: Session | None, *, now: int, progress: str | None = None
    ) -> HoldView:
        """Make the view of a hold; `session` is that of its holder, if it is known."""
        live = session is not None and session.state is Life.LIVE
        lease = session.lease if session is not None and is_live(session, now=now) else None
        status = Status.OFFERED if hold.handing else Status.RUNNING
        how = _held_by(job, hold)
        record = record_of(job, hold, status, now=hold.claimed_at, progress=progress, reason=how)
        view = RunView.of(record).held(hold, lease=lease, now=now)
        return cls(
            **{field.name: getattr(view, field.name) for field in fields(RunView)},
            session=hold.session,
            lease_left_s=(session.expires_at - now) / SECOND if live and session is not None else None,
        )


def where_offered(one: WaitingRun) -> str | None:
    """Return where the message of a run is, and since when; None if no message of it is awaited."""
    offer = one.offer
    if offer is None or not offer.stands:
        return None
    again = "" if offer.tries == 1 else f", published {offer.tries} times"
    why = "" if offer.note is None else f": {offer.note}"
    return f"waits in {offer.carrier} since {iso(offer.since)}, not picked up{again}{why}"


def _not_offered(offer: Offer | None, otherwise: str) -> str:
    """Return when a run is handed over once more, or begins."""
    if offer is None:
        return otherwise
    return f"handed over to {offer.carrier} once more {otherwise}" + (f": {offer.note}" if offer.note else "")


def _held_by(job: Job, hold: Hold) -> str | None:
    """Return how a run got to its holder, where a carrier takes it there."""
    if hold.offer is not None:
        return f"{hold.node} hands it over to {hold.offer.carrier}"
    return None if job.definition.hand_over is None else f"picked up by {hold.node} from {job.definition.run_in}"


def moment(us: int | None) -> datetime | None:
    """Convert microseconds to an aware datetime."""
    return None if us is None else from_us(us)
