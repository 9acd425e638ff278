"""What people and programs get to see of jobs, runs and nodes: frozen values with aware datetimes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from solocron.clock import from_us, iso, to_us
from solocron.model.change import SmallDocument
from solocron.model.documents.job import Hold, Job, WaitingRun
from solocron.model.documents.run import Record, Shards, shard_of
from solocron.model.documents.session import Life, Session
from solocron.model.transitions.claimant import stopping_since, stuck_since
from solocron.schedules import Schedule, load_zone

__all__ = [
    "AlarmView",
    "BackfillView",
    "JobView",
    "LimitView",
    "NodeView",
    "PauseView",
    "PermitView",
    "ResumeView",
    "RunView",
    "StatusView",
    "to_json",
]

WAITING = "waiting"
"""A run that waits and not yet claimed; not a status of the log."""


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
    """What a process of its own printed, bounded; while it runs the last lines of it."""
    first: datetime
    count: int
    shard: str | None
    """The shard of its slot, where the job is sharded."""
    deadline: datetime | None = None
    """Of a run that goes on: when its timeout is over."""
    stopping: str | None = None
    """Of a run that goes on: why its body is being stopped."""
    stopping_since: datetime | None = None
    stuck: bool = False
    """Its body has been asked to stop for more than a lease, and goes on."""

    @property
    def id(self) -> str:
        return self.run

    @classmethod
    def of(cls, record: Record) -> RunView:
        told = {} if record.progress is None else json.loads(record.progress)
        output = told.pop("output", None)
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
            claimed_at=_moment(record.claimed_at),
            started_at=_moment(record.started_at),
            finished_at=_moment(record.finished_at),
            error=record.error,
            result=None if record.result is None else json.loads(record.result),
            progress=told or None,
            output=output,
            first=from_us(record.slot if record.first is None else record.first),
            count=record.count,
            shard=record.key.rpartition("#")[2] if shard_of(record.run) else None,
        )

    @classmethod
    def waiting(cls, job: str, waiting_run: WaitingRun, key: str) -> RunView:
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
            status=WAITING,
            reason=reason,
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
        )

    def held(self, hold: Hold, *, lease: int | None, now: int) -> RunView:
        """A run that goes on, with what its claim says; `lease` is that of a live holder."""
        since = stopping_since(hold, now=now)
        late = since is not None and since == hold.deadline
        return replace(
            self,
            deadline=_moment(hold.deadline),
            stopping="still running at its deadline" if late else hold.cancel,
            stopping_since=_moment(since),
            stuck=lease is not None and stuck_since(hold, lease=lease, now=now) is not None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PermitView:
    """A permit that is taken: by whom, since when, and for which run (None: not claimed yet)."""

    permit: str
    node: str | None
    session: str
    since: datetime | None
    run: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitView:
    """A limit across jobs as it stands: how many may run, which permits are taken, and which jobs name it."""

    name: str
    most: int
    taken: tuple[PermitView, ...]
    jobs: tuple[str, ...]
    waiting: int
    """Runs of these jobs that are due and wait."""

    @classmethod
    def of(cls, name: str, jobs: Sequence[Job], permits: Sequence[SmallDocument], *, now: int) -> LimitView:
        runs = {hold.permit: hold.run for job in jobs for hold in job.active if hold.permit is not None}
        return cls(
            name=name,
            most=max(int((job.definition.limit or ":0").rpartition(":")[2]) for job in jobs),
            taken=tuple(
                PermitView(
                    permit=doc.name,
                    node=doc.body.get("node"),
                    session=doc.session,
                    since=_moment(doc.body.get("since")),
                    run=runs.get(doc.name),
                )
                for doc in permits
                if doc.session is not None
            ),
            jobs=tuple(job.name for job in jobs),
            waiting=sum(job.waiting for job in jobs if job.due_at is not None and job.due_at <= now),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseView:
    """Who paused a job, when, why and until when."""

    at: datetime
    by: str | None
    note: str | None
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillView:
    """A backfill and how far it is; `id` is None when it was only counted."""

    id: str | None
    job: str
    first: datetime
    """The first slot that is still to start."""
    last: datetime
    total: int
    waiting: int
    running: int
    """Runs that have started and are not over, those that wait for a retry included."""
    done: int
    rate: float | None
    """Seconds between two starts, at the least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeView:
    """What a resume would do now; nothing has been done yet."""

    job: str
    paused: PauseView | None
    skipped: int
    """Slots of the pause that will be on record as skipped."""
    missed: int
    """Slots since the pause ended by itself that are not decided yet, and that catch-up does not run."""
    first: datetime | None
    last: datetime | None
    waiting: int
    """Runs that wait and start then: retries, queued and caught-up slots."""
    next: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job as it stands."""

    name: str
    schedule: str
    zone: str
    handler: str
    application: str | None
    """The application whose function it calls."""
    pool: str
    enabled: bool
    next: datetime | None
    """Its next slot, in its zone; None when it is paused, disabled or over."""
    due_at: datetime | None
    cursor: datetime
    paused: PauseView | None
    running: tuple[Hold, ...]
    waiting: int
    failures: int
    last_status: str | None
    last_slot: datetime | None
    last_error: str | None
    revision: int | None
    orphaned: bool
    """No live node can run it."""
    retries: int
    overlap: str
    catch_up: str
    shards: Shards | None
    """Into how many shards each slot is cut, or what they are called."""
    nodes: int | str | None
    prefer: str | None
    limit: str | None

    @classmethod
    def of(
        cls,
        job: Job,
        schedule: Schedule | None,
        *,
        following: int | None,
        orphaned: bool,
        unreadable: str | None = None,
    ) -> JobView:
        definition, spec = job.definition, job.definition.schedule or {}
        zone = str(spec.get("tz", "UTC"))
        info = UTC if unreadable else load_zone(zone).info
        pause, last = job.paused, job.last
        what = "by trigger" if not spec else schedule.describe() if schedule else str(spec.get("describe", unreadable))
        return cls(
            name=job.name,
            schedule=what,
            zone=zone,
            handler=definition.handler,
            application=definition.application,
            pool=definition.pool,
            enabled=definition.enabled,
            next=None if following is None else from_us(following).astimezone(info),
            due_at=_moment(job.due_at),
            cursor=from_us(job.cursor),
            paused=None
            if pause is None
            else PauseView(at=from_us(pause.at), by=pause.by, note=pause.note, until=_moment(pause.until)),
            running=job.active,
            waiting=job.waiting,
            failures=job.failures,
            last_status=None if last is None else str(last.status),
            last_slot=None if last is None else from_us(last.slot).astimezone(info),
            last_error=None if last is None else last.error,
            revision=job.revision,
            orphaned=orphaned,
            retries=definition.retries,
            overlap=f"allow({definition.overlap.most})"
            if definition.overlap.kind == "allow"
            else definition.overlap.kind,
            catch_up=definition.catch_up.kind,
            shards=definition.shards,
            nodes=definition.nodes,
            prefer=definition.prefer,
            limit=definition.limit,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node's session as it stands: live, silent (past its lease, not yet buried), dead."""

    node: str
    session: str
    host: str
    pid: int
    pools: tuple[str, ...]
    version: str
    zone_data: str
    revision: int | None
    state: str
    started_at: datetime
    expires_at: datetime
    ended_at: datetime | None
    running: int
    reason: str | None

    @classmethod
    def of(cls, session: Session, *, now: int) -> NodeView:
        live = session.state is Life.LIVE
        return cls(
            node=session.node,
            session=session.name,
            host=session.host,
            pid=session.pid,
            pools=session.pools,
            version=session.version,
            zone_data=session.zone_data,
            revision=session.revision,
            state=("silent" if session.expires_at <= now else "live") if live else "dead",
            started_at=from_us(session.started_at),
            expires_at=from_us(session.expires_at),
            ended_at=_moment(session.ended_at),
            running=session.running,
            reason=session.reason,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmView:
    """An alarm that is open: what is wrong with what, and since when."""

    kind: str
    subject: str
    detail: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView:
    """The whole at a glance; `counts` are the records of the last 24 hours by status."""

    store: str
    tier: str
    namespace: str
    now: datetime
    nodes: tuple[NodeView, ...]
    running: tuple[RunView, ...]
    counts: Mapping[str, int]
    jobs: int
    paused: tuple[str, ...]
    orphaned: tuple[str, ...]
    blocked: tuple[str, ...]
    overdue: tuple[str, ...]
    """Due for more than five minutes, and not claimed."""
    unserved: Mapping[str, int]
    """Pools without a live node, and how many jobs of theirs do not run because of that."""
    alarms: tuple[AlarmView, ...]
    """What is open, as the nodes that look for alarms have found it."""


def _moment(us: int | None) -> datetime | None:
    return None if us is None else from_us(us)


def to_json(value: Any) -> Any:
    """A view as plain JSON: instants as ISO-8601 UTC."""
    if isinstance(value, datetime):
        return iso(to_us(value))
    if isinstance(value, Hold):
        return {
            "run": value.run, "slot": iso(value.slot), "attempt": value.attempt, "node": value.node,
            "fence": value.fence, "claimed_at": iso(value.claimed_at), "cancel": value.cancel,
            "deadline": to_json(_moment(value.deadline)), "asked_at": to_json(_moment(value.asked_at)),
        }  # fmt: skip
    if hasattr(type(value), "__dataclass_fields__"):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value
