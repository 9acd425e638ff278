"""`JobView`, and the views of what can be done with jobs: pauses, resumes, backfills and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from solocron.clock import from_us
from solocron.jobs.job_spec import JobSpec, options_of
from solocron.jobs.options import AddOptions
from solocron.model.change import SmallDocument
from solocron.model.documents.job import Job
from solocron.model.documents.run import Shards
from solocron.model.documents.scoped_pause import Reach, ScopedPause
from solocron.model.documents.session import Session
from solocron.model.policy import Backoff, CatchUp, Overlap
from solocron.schedules import Schedule, load_zone
from solocron.views.runs import HoldView, moment
from solocron.views.waits import WaitView, waits_of

__all__ = [
    "BackfillView",
    "JobView",
    "LimitView",
    "PauseView",
    "PermitView",
    "ResumeView",
    "ScopedPauseView",
    "SyncView",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseView:
    """The pause of a job: when, by whom, why and until when."""

    at: datetime
    by: str | None
    note: str | None
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedPauseView:
    """A pause of many jobs at once: of all (neither `pool` nor `match`), of a pool, or of the names that match."""

    scope: str
    """What it covers, in words: "all jobs", "pool etl", "jobs matching invoice:*"."""
    option: str
    """The option of `solocron resume` that lifts it: "--all", "--pool etl"."""
    pool: str | None
    match: str | None
    at: datetime
    by: str | None
    note: str | None
    until: datetime | None
    triggers: bool
    """True if runs that a person or a program requested wait as well."""

    @classmethod
    def of(cls, pause: ScopedPause) -> ScopedPauseView:
        """Make the view of a pause."""
        scope = pause.scope
        return cls(
            scope=str(scope),
            option=scope.option,
            pool=scope.value if scope.reach is Reach.POOL else None,
            match=scope.value if scope.reach is Reach.MATCH else None,
            at=from_us(pause.at),
            by=pause.by,
            note=pause.note,
            until=moment(pause.until),
            triggers=pause.triggers,
        )


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
    """Its next slot, in its zone; None if it is paused, disabled or over."""
    due_at: datetime | None
    cursor: datetime
    paused: PauseView | None
    """Its own pause."""
    pauses: tuple[ScopedPauseView, ...]
    """Pauses of many jobs that cover it, the oldest first."""
    running: tuple[HoldView, ...]
    waiting: int
    waits: tuple[WaitView, ...]
    """The first of the runs that wait, and what each waits for."""
    failures: int
    last_status: str | None
    last_slot: datetime | None
    last_error: str | None
    revision: int | None
    orphaned: bool
    """True if no live node can run it."""
    retries: int
    overlap: Overlap
    catch_up: CatchUp
    shards: Shards | None
    """Number of shards of each slot, or their names."""
    nodes: int | str | None
    prefer: str | None
    limit: str | None
    expression: str | None
    """The cron expression, as it was given."""
    spec: Mapping[str, Any] | None
    """The schedule as the store keeps it; None: by trigger alone."""
    dst: Mapping[str, str] | None
    calendar: str | None
    on_holiday: str | None
    spread: str | None
    starts: str | None
    """The first day or instant of the schedule."""
    ends: str | None
    payload: Any
    timeout: timedelta | None
    start_within: timedelta | None
    backoff: Backoff
    on_crash: str
    on_lost: str
    on_stuck: str
    pause_after: int | None
    run_in: str
    hand_over: Mapping[str, Any] | None
    """Options for the carrier that `run_in` names; None if it runs on nodes."""
    memory: int | None
    """Bytes."""
    cpu: int | None
    tags: tuple[str, ...]
    owner: str | None
    runbook: str | None
    place: str | None
    """Module and line of the function; None for a job added as data."""
    created_at: datetime
    defined_at: datetime | None
    """When its present definition was written."""
    defined_by: str | None
    """Who added it as data, and why, if that was said."""
    defined_note: str | None
    resumed_at: datetime | None
    """When it was last resumed."""
    resumed_by: str | None
    """Who resumed it, and why, if that was said."""
    resumed_note: str | None
    declared: bool
    """True if code declares it; False for a job added as data."""

    def job_spec(self) -> JobSpec:
        """Return the arguments with which `add` makes the same definition."""
        options = {name: getattr(self, "zone" if name == "tz" else name) for name in AddOptions.__annotations__}
        return JobSpec.of(self.name, self.handler, self.spec, options)

    @classmethod
    def of(
        cls,
        job: Job,
        schedule: Schedule | None,
        *,
        following: int | None,
        orphaned: bool,
        sessions: Mapping[str, Session],
        now: int,
        unreadable: str | None = None,
        pauses: Sequence[ScopedPause] = (),
    ) -> JobView:
        """Make the view of a job; `sessions` are those that are known, by name."""
        definition, spec = job.definition, job.definition.schedule or {}
        options = options_of(definition)
        zone = options.pop("tz")
        info = UTC if unreadable else load_zone(zone).info
        pause, resumed, last = job.paused, job.resumed, job.last
        what = "by trigger" if not spec else schedule.describe() if schedule else str(spec.get("describe", unreadable))
        return cls(
            name=job.name,
            schedule=what,
            zone=zone,
            handler=definition.handler,
            application=definition.application,
            next=None if following is None else from_us(following).astimezone(info),
            due_at=moment(job.due_at),
            cursor=from_us(job.cursor),
            paused=None
            if pause is None
            else PauseView(at=from_us(pause.at), by=pause.by, note=pause.note, until=moment(pause.until)),
            pauses=tuple(ScopedPauseView.of(one) for one in pauses if one.stands(now) and one.scope.covers(job)),
            running=tuple(HoldView.of_hold(job, hold, sessions.get(hold.session), now=now) for hold in job.active),
            waiting=job.waiting,
            waits=waits_of(job, pauses=pauses, now=now),
            failures=job.failures,
            last_status=None if last is None else str(last.status),
            last_slot=None if last is None else from_us(last.slot).astimezone(info),
            last_error=None if last is None else last.error,
            revision=job.revision,
            orphaned=orphaned,
            expression=spec.get("expression"),
            spec=definition.schedule,
            place=job.place,
            created_at=from_us(job.incarnation),
            defined_at=moment(job.defined_at),
            defined_by=job.defined_by,
            defined_note=job.defined_note,
            resumed_at=None if resumed is None else from_us(resumed.at),
            resumed_by=None if resumed is None else resumed.by,
            resumed_note=None if resumed is None else resumed.note,
            declared=job.source is not None,
            **options,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncView:
    """What a sync did, or would do: the names of the jobs below its prefix that differ from its list."""

    within: str
    added: tuple[str, ...]
    changed: Mapping[str, tuple[str, ...]]
    """By name, the options that differ."""
    removed: tuple[str, ...]
    same: int
    """Number of jobs that are as the list has them."""
    left: tuple[str, ...]
    """Jobs that were to be removed and that another process has changed meanwhile."""
    applied: bool
    """False if it was only compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeView:
    """The effect that a resume would have now; nothing has been done yet."""

    job: str
    paused: PauseView | None
    skipped: int
    """Slots of the pause that will be recorded as skipped."""
    missed: int
    """Slots since the pause ended by itself that are not decided yet, and that catch-up does not run."""
    first: datetime | None
    last: datetime | None
    waiting: int
    """Waiting runs that start then: retries, queued and caught-up slots."""
    next: datetime | None


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
    asked_by: str | None
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PermitView:
    """A permit that is taken: by which node, since when, and for which run (None: not claimed yet)."""

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
        """Make the view of a limit from the jobs that name it and its permits."""
        runs = {hold.permit: hold.run for job in jobs for hold in job.active if hold.permit is not None}
        return cls(
            name=name,
            most=max(int((job.definition.limit or ":0").rpartition(":")[2]) for job in jobs),
            taken=tuple(
                PermitView(
                    permit=doc.name,
                    node=doc.body.get("node"),
                    session=doc.session,
                    since=moment(doc.body.get("since")),
                    run=runs.get(doc.name),
                )
                for doc in permits
                if doc.session is not None
            ),
            jobs=tuple(job.name for job in jobs),
            waiting=sum(job.waiting for job in jobs if job.due_at is not None and job.due_at <= now),
        )
