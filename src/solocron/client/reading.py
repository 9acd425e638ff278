"""Looks at a namespace: its jobs, runs, nodes and limits, as frozen values. Changes nothing."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from solocron.clock import SECOND, from_us, to_us
from solocron.engine.calendars import Calendars
from solocron.errors import InvalidError, NotFoundError
from solocron.jobs.registry import Registry
from solocron.model.applications import can_run
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.alarm import is_open
from solocron.model.documents.job import Job, WaitingRun
from solocron.model.documents.permit import limit_of, parse
from solocron.model.documents.request import first_name
from solocron.model.documents.run import Origin, Record, Status, group_of, job_of, key_of, shard_of
from solocron.model.documents.session import Life, Session
from solocron.model.pools import unserved
from solocron.model.transitions.shards import each
from solocron.runtime import Runtime, Threads
from solocron.schedules import Schedule, instants, load_zone
from solocron.stores.contract import All, Named, Query, Store
from solocron.views import AlarmView, JobView, LimitView, NodeView, RunView, StatusView

__all__ = ["PAGE", "Reader", "is_orphaned"]

Span = timedelta | int | float | str

PAGE = 1_000
_DAY = 86_400 * SECOND
_OVERDUE = 300 * SECOND


class Reader:
    """A view on one namespace of a store."""

    def __init__(
        self,
        store: Store,
        *,
        registry: Registry | None = None,
        runtime: Runtime | None = None,
        late_for: int = 25 * SECOND,
    ) -> None:
        self.store = store
        self._registry = registry or Registry()
        self._runtime = runtime or Threads()
        self.late_for = late_for
        self._calendars_of: Calendars | None = None
        self._asked = 0
        self.changed: list[Callable[[], None]] = []
        """Called after each change, so that a node in the same process looks at once."""

    def jobs(self) -> list[JobView]:
        """Every job of the namespace, by name."""
        sessions, now = self._sessions(), self.store.clock()
        return [self._view(job, sessions, now) for job in self._jobs() if not job.removed]

    def get_job(self, name: str) -> JobView:
        return self._view(self._one(name), self._sessions(), self.store.clock())

    def runs(
        self, job: str | None = None, *, status: str | Iterable[str] | None = None, limit: int = 50
    ) -> list[RunView]:
        """Records of the log, newest first."""
        if not 1 <= limit <= 10_000:
            raise InvalidError(f"limit={limit}: give a whole number from 1 to 10000.")
        wanted = [status] if isinstance(status, str) else list(status or ())
        for one in wanted:
            if one not in set(Status):
                raise InvalidError(f"status {one!r} is not known; choose from {', '.join(Status)}.")
        records = self.store.history(Query(job=job, statuses=frozenset(wanted), limit=limit))
        if job is not None and not records:  # a removed job is still on record
            self._one(job)
        return self._as_held([RunView.of(record) for record in records])

    def get_run(self, id: str) -> RunView:
        """The last attempt of a run, or the run as it waits."""
        found = self._find(id)
        if found is None:
            raise NotFoundError(
                f"there is no run {id!r} in namespace {self.store.namespace!r}; `solocron runs` lists them."
            )
        return self._as_held([found[0]])[0]

    def attempts(self, id: str) -> list[RunView]:
        """Every attempt of a run that is on record, oldest first."""
        records = self.store.history(Query(run=id, limit=1_000)) or self._shards(id)
        return sorted(map(RunView.of, records), key=lambda view: (view.attempt, view.run))

    def nodes(self) -> list[NodeView]:
        """Every node that is alive or was not yet swept, by name."""
        now = self.store.clock()
        views = [NodeView.of(session, now=now) for session in self._sessions() if session.state is not Life.SWEPT]
        return sorted(views, key=lambda view: (view.node, view.session))

    def limits(self) -> list[LimitView]:
        """Every limit that a job names, by name: how many may run, and who has the permits."""
        now, found = self.store.clock(), self._jobs()
        named: dict[str, list[Job]] = {}
        for job in found:
            if job.definition.limit is not None and not job.removed:
                named.setdefault(parse(job.definition.limit)[0], []).append(job)
        permits = [doc for doc in self.store.read(All(Kind.PERMIT)) if isinstance(doc, SmallDocument)]
        return [
            LimitView.of(name, jobs, [doc for doc in permits if limit_of(doc.name) == name], now=now)
            for name, jobs in sorted(named.items())
        ]

    def status(self) -> StatusView:
        """Nodes, what runs, the counts of the last 24 hours, and what needs a look."""
        now, sessions, jobs = self.store.clock(), self._sessions(), self._jobs()
        running = self.store.history(Query(statuses=frozenset({Status.RUNNING}), limit=1_000))
        return StatusView(
            store=self.store.url,
            tier=str(self.store.capabilities.tier),
            namespace=self.store.namespace,
            now=from_us(now),
            nodes=tuple(self.nodes()),
            running=tuple(_with_holds(map(RunView.of, running), jobs, sessions, now)),
            counts=dict(self.store.tally(now - _DAY)),
            jobs=len(jobs),
            paused=tuple(job.name for job in jobs if job.paused is not None),
            orphaned=tuple(job.name for job in jobs if is_orphaned(job, sessions, now)),
            blocked=tuple(blocked.name for blocked in self.store.blocked()),
            overdue=tuple(job.name for job in jobs if job.due_at is not None and now - job.due_at > _OVERDUE),
            unserved={pool: len(names) for pool, names in unserved(jobs, sessions, now=now).items()},
            alarms=self._alarms(),
        )

    def upcoming(self, job: str, n: int = 10, *, start: datetime | None = None) -> list[datetime]:
        """The next slots of a job, in its zone; with `start`, what its schedule has strictly after that instant."""
        if not 1 <= n <= 1_000:
            raise InvalidError(f"n={n}: give a whole number from 1 to 1000.")
        doc = self._one(job)
        slots = self._registry.resolve(doc.definition.schedule)
        if not slots.known:
            raise InvalidError(
                f"{job} has a schedule of its own class, which only its code knows; ask a program that has it."
            )
        info = load_zone(str((doc.definition.schedule or {}).get("tz", "UTC"))).info
        at = max(slots.decided_until(doc.cursor, doc.nominal), self.store.clock()) if start is None else to_us(start)
        found: list[datetime] = []
        while len(found) < n:
            following = slots.after(at)
            if following is None:
                break
            found.append(from_us(following).astimezone(info))
            at = following
        return found

    def schedule(self, job: str) -> Schedule | None:
        """The rule of a job's slots; None where there is none, or where only code has it."""
        return self._registry.resolve(self._one(job).definition.schedule).schedule

    @property
    def _calendars(self) -> Calendars:
        if self._calendars_of is None or self._calendars_of.store is not self.store:
            self._calendars_of = Calendars(self.store, self._registry)
        return self._calendars_of

    def _view(self, job: Job, sessions: list[Session], now: int) -> JobView:
        orphaned = is_orphaned(job, sessions, now)
        try:
            slots = self._registry.resolve(job.definition.schedule)
        except InvalidError as error:  # one that this release or its zone data cannot read must not hide the others
            return JobView.of(job, None, following=None, orphaned=orphaned, unreadable=str(error))
        following = None
        if job.paused is None and job.definition.enabled and slots.schedule is not None:
            following = instants.after(slots.schedule, max(slots.decided_until(job.cursor, job.nominal), now))
        return JobView.of(job, slots.schedule, following=following, orphaned=orphaned)

    def _as_held(self, views: list[RunView]) -> list[RunView]:
        """Those that go on, with what their claims say."""
        names = tuple({view.job for view in views if view.status == Status.RUNNING})
        if not names:
            return views
        jobs = [doc for doc in self.store.read(Named(Kind.JOB, names)) if isinstance(doc, Job)]
        return _with_holds(views, jobs, self._sessions(), self.store.clock())

    def _alarms(self) -> tuple[AlarmView, ...]:
        notes = [doc for doc in self.store.read(All(Kind.ALARM)) if isinstance(doc, SmallDocument) and is_open(doc)]
        return tuple(
            AlarmView(
                kind=doc.body["kind"],
                subject=doc.body["subject"],
                detail=doc.body["detail"],
                since=from_us(doc.body["since"]),
            )
            for doc in sorted(notes, key=lambda doc: (doc.body["since"], doc.name))
        )

    def _jobs(self) -> list[Job]:
        found: list[Job] = []
        after = ""
        while True:
            page = self.store.read(All(Kind.JOB, after=after, limit=PAGE))
            found += [doc for doc in page if isinstance(doc, Job)]
            if len(page) < PAGE:
                self._calendars.learn(found)
                return found
            after = page[-1].name

    def _sessions(self) -> list[Session]:
        return [doc for doc in self.store.read(All(Kind.SESSION)) if isinstance(doc, Session)]

    def _one(self, name: str) -> Job:
        for doc in self.store.read(Named(Kind.JOB, (name,))):
            if isinstance(doc, Job):
                self._calendars.learn([doc])
                return doc
        raise self._unknown(name)

    def _unknown(self, name: str) -> NotFoundError:
        names = [job.name for job in self._jobs()]
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "`solocron jobs` lists them."
        return NotFoundError(
            f"there is no job {name!r} in namespace {self.store.namespace!r}; {hint} Nothing was changed."
        )

    def _find(self, run: str) -> tuple[RunView, bool] | None:
        """A run's last word, and whether it is final; one that was just being taken in is found at the second look."""
        return self._find_run(run) or self._find_left(run) or self._find_run(run)

    def _find_run(self, run: str) -> tuple[RunView, bool] | None:
        name = job_of(run)
        job = (
            next((doc for doc in self.store.read(Named(Kind.JOB, (name,))) if isinstance(doc, Job)), None)
            if name
            else None
        )
        records = self.store.history(Query(run=run, limit=1_000))
        parts = () if records else self._shards(run)
        last = max(map(RunView.of, records), key=lambda view: view.attempt, default=None)
        if parts:  # the one that stands for all: what still runs, else what ended worst, else the last
            views = {record.run: RunView.of(record) for record in sorted(parts, key=lambda record: record.attempt)}
            order = (Status.RUNNING, Status.FAILED, Status.TIMED_OUT, Status.LOST, Status.CANCELLED)
            last = min(
                views.values(), key=lambda view: order.index(view.status) if view.status in order else len(order)
            )
        if job is not None:
            for waiting_run in job.waiting_runs:
                for one in each(waiting_run):
                    if run in (one.run, group_of(one.run)):
                        key = key_of(job.name, one.origin, one.slot, one.request, one.shard)
                        return RunView.waiting(job.name, one, key), False
            if any(run in (hold.run, group_of(hold.run)) for hold in job.active):
                return (last, False) if last is not None else None
        if last is None:
            return None
        # The document was read before the log: a run that ended in between is found by its record.
        return last, last.status != Status.RUNNING

    def _shards(self, run: str) -> tuple[Record, ...]:
        """The records of the shards of one slot or request."""
        if shard_of(run) is not None or not job_of(run):
            return ()
        records = self.store.history(Query(job=job_of(run), limit=10_000))
        return tuple(record for record in records if group_of(record.run) == run)

    def _find_left(self, run: str) -> tuple[RunView, bool] | None:
        """A run that a transaction has asked for and that no node has taken in yet."""
        first = first_name(run)
        for note in self.store.read(All(Kind.REQUEST, after=first, limit=1)):
            if isinstance(note, SmallDocument) and note.name.startswith(first):
                request, at = note.body["request"], note.body.get("at") or self.store.clock()
                waiting_run = WaitingRun(run=run, slot=at, origin=Origin.TRIGGER, ready_at=at, request=request)
                return RunView.waiting(
                    job_of(run), waiting_run, key_of(job_of(run), waiting_run.origin, at, request)
                ), False
        return None


def _with_holds(views: Iterable[RunView], jobs: Iterable[Job], sessions: Iterable[Session], now: int) -> list[RunView]:
    holds = {(hold.run, hold.fence): hold for job in jobs for hold in job.active}
    leases = {one.name: one.lease for one in sessions if one.state is Life.LIVE and one.expires_at > now}
    found = []
    for view in views:
        hold = holds.get((view.run, view.fence)) if view.status == Status.RUNNING else None
        found.append(view if hold is None else view.held(hold, lease=leases.get(hold.session), now=now))
    return found


def is_orphaned(job: Job, sessions: list[Session], now: int) -> bool:
    """Whether no live node of its pool has its handler."""
    return not any(
        session.state is Life.LIVE and session.expires_at > now and can_run(session, job.definition)
        for session in sessions
    )
