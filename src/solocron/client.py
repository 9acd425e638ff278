"""Operates a namespace without running a node: lists, triggers, pauses, cancels, adds. Every change is a model's."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from solocron.calendars import CalendarView, days_off, notes_of, save, unknown_calendar
from solocron.calendars import view as calendar_view
from solocron.clock import SECOND, from_us, to_us
from solocron.durable.requests import check_connection, leave
from solocron.duration import parse_duration
from solocron.engine.calendars import Calendars
from solocron.errors import Conflict, Invalid, NotFound, StoreError, WaitTimeout
from solocron.jobs.declaration import Declaration, check_name, check_payload
from solocron.jobs.registry import Registry
from solocron.locks.listing import raise_fences
from solocron.model import asking, defining
from solocron.model.alarm import is_open
from solocron.model.calendars import calendar_of, with_revision
from solocron.model.change import Absent, Change, Kind, Note
from solocron.model.job import Job, Owed
from solocron.model.permit import limit_of, parse
from solocron.model.policy import QUEUE_LIMIT
from solocron.model.request import first_name, run_named
from solocron.model.request import leave as request_left
from solocron.model.run import Origin, Record, Status, group_of, job_of, key_of, run_id, slice_of
from solocron.model.session import Life, Session
from solocron.model.slices import each, labels
from solocron.runtime import Runtime, Threads
from solocron.schedules import Calendar, Calendared, Schedule, Spread, instants, load_zone
from solocron.stores.contract import All, ChangeFn, Named, Query, Store, Verdict
from solocron.views import AlarmView, JobView, LimitView, NodeView, ResumeView, RunView, StatusView

__all__ = ["Client"]

Span = timedelta | int | float | str

PAGE = 1_000
_FETCH_FIRST = object()
"""The answer of a change that cannot be made before a calendar has been fetched."""
_DAY = 86_400 * SECOND
_OVERDUE = 300 * SECOND


class Client:
    """A view on one namespace of a store, and the hands to change it."""

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
        self._late_for = late_for
        self._calendars_of: Calendars | None = None
        self._asked = 0
        self.changed: list[Callable[[], None]] = []
        """Called after each change, so that a node in the same process looks at once."""

    # --- looking ---------------------------------------------------------------------------------------------

    def jobs(self) -> list[JobView]:
        """Every job of the namespace, by name."""
        sessions, now = self._sessions(), self.store.clock()
        return [self._view(job, sessions, now) for job in self._jobs() if not job.removed]

    def job(self, name: str) -> JobView:
        return self._view(self._one(name), self._sessions(), self.store.clock())

    def runs(
        self, job: str | None = None, *, status: str | Iterable[str] | None = None, limit: int = 50
    ) -> list[RunView]:
        """Records of the log, newest first."""
        if not 1 <= limit <= 10_000:
            raise Invalid(f"limit={limit}: give a whole number from 1 to 10000.")
        wanted = [status] if isinstance(status, str) else list(status or ())
        for one in wanted:
            if one not in set(Status):
                raise Invalid(f"status {one!r} is not known; choose from {', '.join(Status)}.")
        records = self.store.history(Query(job=job, statuses=frozenset(wanted), limit=limit))
        if job is not None and not records:  # a removed job is still on record
            self._one(job)
        return [RunView.of(record) for record in records]

    def run(self, id: str) -> RunView:
        """The last attempt of a run, or the run as it waits."""
        found = self._find(id)
        if found is None:
            raise NotFound(f"there is no run {id!r} in namespace {self.store.namespace!r}; `solocron runs` lists them.")
        return found[0]

    def attempts(self, id: str) -> list[RunView]:
        """Every attempt of a run that is on record, oldest first."""
        records = self.store.history(Query(run=id, limit=1_000)) or self._slices(id)
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
        permits = [doc for doc in self.store.read(All(Kind.PERMIT)) if isinstance(doc, Note)]
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
            running=tuple(map(RunView.of, running)),
            counts=dict(self.store.tally(now - _DAY)),
            jobs=len(jobs),
            paused=tuple(job.name for job in jobs if job.paused is not None),
            orphaned=tuple(job.name for job in jobs if _orphaned(job, sessions, now)),
            blocked=tuple(blocked.name for blocked in self.store.blocked()),
            overdue=tuple(job.name for job in jobs if job.due_at is not None and now - job.due_at > _OVERDUE),
            alarms=self._alarms(),
        )

    def next(self, job: str, n: int = 10, *, start: datetime | None = None) -> list[datetime]:
        """The next slots of a job, in its zone; with `start`, what its schedule has strictly after that instant."""
        if not 1 <= n <= 1_000:
            raise Invalid(f"n={n}: give a whole number from 1 to 1000.")
        doc = self._one(job)
        slots = self._registry.resolve(doc.definition.schedule)
        if not slots.known:
            raise Invalid(
                f"{job} has a schedule of its own class, which only its code knows; ask a program that has it."
            )
        info = load_zone(str((doc.definition.schedule or {}).get("tz", "UTC"))).info
        at = max(slots.settled(doc.cursor, doc.nominal), self.store.clock()) if start is None else to_us(start)
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

    # --- asking ----------------------------------------------------------------------------------------------

    def trigger(
        self,
        job: str,
        payload: Any = None,
        *,
        at: datetime | None = None,
        key: str | None = None,
        shard: int | str | None = None,
        connection: Any = None,
    ) -> str:
        """Run a job now, or at an instant; answers the run's id. The same key twice is one run.

        A sliced job runs every slice, or the one named; `run`, `wait` and `cancel` take the answer for all of them.
        With `connection`, in the transaction that is open there: no commit, no run.
        """
        if connection is not None:
            check_connection(self.store, connection)
            note = self.request(job, payload, at=at, key=key, shard=shard)
            leave(self.store, connection, note)
            return run_named(note)
        payload, when = self._checked(job, payload, at=at, key=key)
        request = key if key is not None else self._runtime.rng.token()
        if key is not None:
            # The document remembers its last requests; the log remembers the rest.
            doc = self._one(job)
            run = run_id(job, doc.incarnation, Origin.TRIGGER, request)
            if any(self.store.history(Query(run=known, limit=1)) for known in (run, f"{run}#0")):
                return run
        answer = self._ask(
            job,
            lambda doc, now: asking.trigger(
                doc, request=request, payload=payload, at=when, now=now, resolve=self._registry.resolve, shard=shard
            ),
        )
        if answer == "!slice":
            raise _no_slice(job, shard)
        if answer == "!disabled":
            raise _disabled(job)
        if answer == "!full":
            raise Conflict(
                f"{QUEUE_LIMIT} runs of {job} wait already, so it was not triggered; see `solocron runs {job}`."
            )
        return str(answer)

    def request(
        self,
        job: str,
        payload: Any = None,
        *,
        at: datetime | None = None,
        key: str | None = None,
        shard: int | str | None = None,
    ) -> Note:
        """A trigger as a document that a transaction of the caller's own can leave in the store."""
        payload, when = self._checked(job, payload, at=at, key=key)
        doc = self._one(job)
        if doc.removed:
            raise self._unknown(job)
        if not doc.definition.enabled:
            raise _disabled(job)
        if shard is not None and str(shard) not in map(str, labels(doc.definition.shards or ())):
            raise _no_slice(job, shard)
        request, rng = key if key is not None else self._runtime.rng.token(), self._runtime.rng
        self._asked += 1
        return request_left(
            run=run_id(job, doc.incarnation, Origin.TRIGGER, request),
            request=request,
            payload=payload,
            at=when,
            shard=shard,
            keyed=key is not None,
            asked=(round(self._runtime.clock.wall() * SECOND), self._asked),
            token=rng.token(),
        )

    @staticmethod
    def _checked(job: str, payload: Any, *, at: datetime | None, key: str | None) -> tuple[Any, int | None]:
        if payload is not None:
            payload = check_payload(payload, whose=f"a trigger of {job}")
        if key is not None and (not isinstance(key, str) or not 0 < len(key) <= 256 or not key.isprintable()):
            raise Invalid(f"key={key!r:.80} cannot be used: 1 to 256 printable characters. Nothing was triggered.")
        if at is not None and at.utcoffset() is None:
            raise Invalid(f"at={at!r} has no time zone; nothing was triggered. Hand over an aware datetime.")
        return payload, None if at is None else to_us(at)

    def wait(self, run: str, timeout: Span | None = None) -> RunView:
        """Wait until a run is over, retries included; answers its last attempt."""
        limit = None if timeout is None else parse_duration(timeout, what="timeout").total_seconds()
        clock, pause = self._runtime.clock, 0.01
        until = None if limit is None else clock.boot() + limit
        sleeper = self._runtime.event()
        while True:
            found = self._find(run)
            if found is None:
                raise NotFound(f"there is no run {run!r} in namespace {self.store.namespace!r}.")
            if found[1]:
                return found[0]
            left = None if until is None else until - clock.boot()
            if left is not None and left <= 0:
                raise WaitTimeout(f"{run} is {found[0].status} after {limit:g} s of waiting; it goes on by itself.")
            sleeper.wait(pause if left is None else min(pause, left))
            pause = min(pause * 1.5, 0.5)

    def cancel(self, run: str, *, reason: str = "cancelled by request") -> str:
        """Stop a run: "asked" when a node has to stop it, "cancelled" when it only waited, or its end if it is over."""
        name = job_of(run)
        answer = None
        if name:
            answer = self._change(
                name,
                lambda doc, now: asking.cancel(doc, run=run, reason=reason, now=now, resolve=self._registry.resolve),
            )
        return str(answer) if answer is not None else self.run(run).status

    def pause(
        self, job: str, *, by: str | None = None, note: str | None = None, until: datetime | None = None
    ) -> JobView:
        """Start nothing more of this job by schedule, until it is resumed or until an instant."""
        if until is not None and until.utcoffset() is None:
            raise Invalid(f"until={until!r} has no time zone; nothing was paused. Hand over an aware datetime.")
        end = None if until is None else to_us(until)
        if end is not None and end <= self.store.clock():
            raise Invalid(f"until={until} is over already; nothing was paused.")
        self._ask(
            job,
            lambda doc, now: asking.pause(
                doc, by=by, note=note, until=end, now=now, late_for=self._late_for, resolve=self._registry.resolve
            ),
        )
        return self.job(job)

    def resume(self, job: str) -> JobView:
        """Go on; the slots of the pause are on record as skipped."""
        self._ask(job, lambda doc, now: asking.resume(doc, now=now, resolve=self._registry.resolve))
        return self.job(job)

    def resume_preview(self, job: str) -> ResumeView:
        """What `resume` would do now: how many slots are skipped, what waits and starts, and when the next slot is."""
        doc, now = self._one(job), self.store.clock()
        if not self._registry.resolve(doc.definition.schedule).known:
            raise Invalid(
                f"{job} has a schedule of its own class, which only its code knows; ask a program that has it."
            )
        plan = asking.preview_resume(doc, now=now, late_for=self._late_for, resolve=self._registry.resolve)
        return ResumeView(
            job=job,
            paused=self._view(doc, [], now).paused,
            skipped=plan.skipped,
            missed=plan.missed,
            first=None if plan.first is None else from_us(plan.first),
            last=None if plan.last is None else from_us(plan.last),
            waiting=plan.waiting,
            next=self._view(plan.job, [], now).next,
        )

    # --- jobs as data ----------------------------------------------------------------------------------------

    def add(self, name: str, handler: str, schedule: str | Schedule | None, **options: Any) -> JobView:
        """Add or change a job as data; its handler is the name of a declared job or of a registered function."""
        check_name(name)
        if schedule is None:
            raise Invalid(f"add({name!r}): a schedule is needed; nothing was added.")
        try:
            declaration = Declaration.make(schedule, name=name, **options)
        except TypeError as error:
            raise Invalid(f"{error}; nothing was added.") from None
        if declaration.on_retry is not None:
            raise Invalid(
                f"add({name!r}): on_retry lives only in code; declare it with the handler. Nothing was added."
            )
        definition, made = declaration.define(name, handler)
        if (definition.schedule or {}).get("kind") == "custom":
            raise Invalid(
                f"{type(made).__name__} lives only in code and cannot be added as data; declare {name} there."
            )
        self._known_handler(handler)
        self._one_bound(name, definition.limit)
        if declaration.calendar is not None:
            latest = self._calendars.latest()
            if declaration.calendar not in latest:
                raise unknown_calendar(declaration.calendar, latest, job=name, untouched="Nothing was added.")
            definition = with_revision(definition, latest[declaration.calendar])
            self._calendars.fetch([(declaration.calendar, latest[declaration.calendar])])
        proposal = defining.Proposal(definition=definition, source=None)

        def define(doc: Job | Absent, now: int) -> Change | None:
            if isinstance(doc, Job) and doc.source is not None and not doc.removed:
                return Change(doc, answer="!declared")
            return defining.define(
                doc, proposal=proposal, now=now, late_for=self._late_for, resolve=self._registry.resolve
            )

        if self._change(name, define) == "!declared":
            raise Conflict(
                f"{name} is declared in code, so it was not changed; change it there, or choose another name."
            )
        return self.job(name)

    def remove(self, name: str) -> None:
        """Forget a job: what waits is cancelled, what runs is asked to stop."""
        doc = self._one(name)
        if doc.source is not None and not _orphaned(doc, self._sessions(), self.store.clock()):
            raise Conflict(f"{name} is declared in code that runs now, so it was not removed; take it out of the code.")
        self._change(
            name,
            lambda found, now: defining.remove(found, now=now, late_for=self._late_for, resolve=self._registry.resolve),
        )

    def restored(self) -> int:
        """After a backup was restored: move every cursor to now and raise every fence; answers how many jobs."""
        fence = self.store.clock() // 1_000
        names = [job.name for job in self._jobs()]
        for start in range(0, len(names), PAGE):
            self._restore(tuple(names[start : start + PAGE]), fence)
        raise_fences(self.store, self._runtime, fence)
        return len(names)

    def _restore(self, names: tuple[str, ...], fence: int) -> None:
        left = names
        for _ in range(8):
            applied = self.store.update(
                Named(Kind.JOB, left),
                lambda doc, now: defining.move_to_now(doc, fence=fence, now=now, resolve=self._registry.resolve),
            )
            done = (Verdict.APPLIED, Verdict.DECLINED)
            left = tuple(result.name for result in applied.results if result.verdict not in done)
            if not left:
                return
        raise StoreError(
            f"{len(left)} jobs could not be moved to now, {left[0]} among them; the others were. "
            "Stop the nodes, see `solocron doctor`, and repeat it."
        )

    # --- calendars -------------------------------------------------------------------------------------------

    def calendar(
        self,
        name: str,
        *,
        weekend: Iterable[str] = ("sat", "sun"),
        holidays: Iterable[date] | Mapping[date, str] = (),
        country: str | None = None,
        subdivision: str | None = None,
    ) -> CalendarView:
        """Make or change a business calendar, for all nodes. Its jobs go on under the new revision from now on."""
        now = self.store.clock()
        wanted = days_off(name, weekend=weekend, holidays=holidays, country=country, subdivision=subdivision, now=now)
        made, jobs = save(self._calendars, wanted, late_for=self._late_for, known=self._calendar(name))
        for call in self.changed:
            call()
        return calendar_view(made, jobs)

    def calendars(self) -> list[CalendarView]:
        """Every calendar of the namespace at its latest revision, and the jobs that name it."""
        found = [self._calendar(name) for name in sorted(self._calendars.latest())]
        jobs = self._jobs()
        return [
            calendar_view(one, [job.name for job in jobs if calendar_of(job.definition.schedule) == one.name])
            for one in found
            if one is not None
        ]

    def next_notes(self, job: str, n: int = 10, *, start: datetime | None = None) -> list[str]:
        """What the job's calendar does to the slots up to its n-th next one, and why; a sentence each."""
        slots = self.next(job, n, start=start)
        rule = self.schedule(job)
        inner = rule.schedule if isinstance(rule, Spread) else rule
        if not isinstance(inner, Calendared) or not slots:
            return []
        begin = self.store.clock() if start is None else to_us(start)
        return notes_of(inner, begin, to_us(slots[-1]))

    @property
    def _calendars(self) -> Calendars:
        if self._calendars_of is None or self._calendars_of.store is not self.store:
            self._calendars_of = Calendars(self.store, self._registry)
        return self._calendars_of

    def _calendar(self, name: str) -> Calendar | None:
        latest = self._calendars.latest([name])
        self._calendars.fetch(latest.items())
        return self._registry.calendars.get((name, latest.get(name, 0)))

    # --- inside ----------------------------------------------------------------------------------------------

    def _view(self, job: Job, sessions: list[Session], now: int) -> JobView:
        orphaned = _orphaned(job, sessions, now)
        try:
            slots = self._registry.resolve(job.definition.schedule)
        except Invalid as error:  # one that this release or its zone data cannot read must not hide the others
            return JobView.of(job, None, following=None, orphaned=orphaned, unreadable=str(error))
        following = None
        if job.paused is None and job.definition.enabled and slots.schedule is not None:
            following = instants.after(slots.schedule, max(slots.settled(job.cursor, job.nominal), now))
        return JobView.of(job, slots.schedule, following=following, orphaned=orphaned)

    def _alarms(self) -> tuple[AlarmView, ...]:
        notes = [doc for doc in self.store.read(All(Kind.ALARM)) if isinstance(doc, Note) and is_open(doc)]
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

    def _unknown(self, name: str) -> NotFound:
        names = [job.name for job in self._jobs()]
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "`solocron jobs` lists them."
        return NotFound(f"there is no job {name!r} in namespace {self.store.namespace!r}; {hint} Nothing was changed.")

    def _one_bound(self, name: str, limit: str | None) -> None:
        """A limit is one number for all jobs that name it."""
        if limit is None:
            return
        for job in self._jobs():
            other = job.definition.limit
            if other not in (None, limit) and job.name != name and parse(other)[0] == parse(limit)[0]:
                raise Conflict(
                    f"{name} says limit={limit!r} and {job.name} {other!r}: a limit has one number. Nothing was added."
                )

    def _known_handler(self, handler: str) -> None:
        """A handler that nobody has is a mistake more often than a plan."""
        if handler in self._registry.handlers:
            return
        sessions = [session for session in self._sessions() if session.state is Life.LIVE]
        known = {name for session in sessions for name in session.handlers or ()}
        known |= {job.definition.handler for job in self._jobs()} | set(self._registry.handlers)
        if handler in known or any(session.handlers is None for session in sessions):
            return
        close = difflib.get_close_matches(handler, sorted(known), n=1)
        hint = f"did you mean {close[0]!r}?" if close else "name a declared job or a registered function."
        raise NotFound(f"no node has a handler {handler!r}; {hint} Nothing was added.")

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
        parts = () if records else self._slices(run)
        last = max(map(RunView.of, records), key=lambda view: view.attempt, default=None)
        if parts:  # the one that stands for all: what still runs, else what ended worst, else the last
            views = {record.run: RunView.of(record) for record in sorted(parts, key=lambda record: record.attempt)}
            order = (Status.RUNNING, Status.FAILED, Status.TIMED_OUT, Status.LOST, Status.CANCELLED)
            last = min(
                views.values(), key=lambda view: order.index(view.status) if view.status in order else len(order)
            )
        if job is not None:
            for owed in job.owed:
                for one in each(owed):
                    if run in (one.run, group_of(one.run)):
                        key = key_of(job.name, one.origin, one.slot, one.request, one.shard)
                        return RunView.waiting(job.name, one, key), False
            if any(run in (hold.run, group_of(hold.run)) for hold in job.active):
                return (last, False) if last is not None else None
        if last is None:
            return None
        # The document was read before the log: a run that ended in between is found by its record.
        return last, last.status != Status.RUNNING

    def _slices(self, run: str) -> tuple[Record, ...]:
        """The records of the slices of one slot or request."""
        if slice_of(run) is not None or not job_of(run):
            return ()
        records = self.store.history(Query(job=job_of(run), limit=10_000))
        return tuple(record for record in records if group_of(record.run) == run)

    def _find_left(self, run: str) -> tuple[RunView, bool] | None:
        """A run that a transaction has asked for and that no node has taken in yet."""
        first = first_name(run)
        for note in self.store.read(All(Kind.REQUEST, after=first, limit=1)):
            if isinstance(note, Note) and note.name.startswith(first):
                request, at = note.body["request"], note.body.get("at") or self.store.clock()
                owed = Owed(run=run, slot=at, origin=Origin.TRIGGER, ready_at=at, request=request)
                return RunView.waiting(job_of(run), owed, key_of(job_of(run), owed.origin, at, request)), False
        return None

    def _ask(self, name: str, change: ChangeFn) -> Any:
        answer = self._change(name, change)
        if answer is None:
            raise self._unknown(name)
        return answer

    def _change(self, name: str, change: ChangeFn) -> Any:
        """Apply one change; requests carry ids of their own, so what is contended or unknown is simply repeated."""

        def informed(doc: Job | Absent, now: int) -> Change | None:
            if isinstance(doc, Job) and self._calendars.unknown(doc) and not tried:
                return Change(doc, answer=_FETCH_FIRST)
            return change(doc, now)

        tried = False
        for _ in range(8):
            result = self.store.update(Named(Kind.JOB, (name,)), informed).results[0]
            if result.answer is _FETCH_FIRST:
                tried = True
                self._calendars.learn([result.doc] if isinstance(result.doc, Job) else [])
                continue
            if result.verdict is Verdict.APPLIED:
                for call in self.changed:
                    call()
                return result.answer
            if result.verdict is Verdict.DECLINED:
                return None
            if result.verdict is Verdict.BLOCKED:
                raise StoreError(f"{name} could not be changed: {result.error}; nothing was written.")
        raise StoreError(
            f"{name} could not be changed: others keep changing it or the store does not answer; try again."
        )


def _no_slice(job: str, shard: int | str | None) -> Invalid:
    return Invalid(f"{job} has no slice {shard!r}, so it was not triggered; `solocron jobs {job}` shows them.")


def _disabled(job: str) -> Conflict:
    return Conflict(f"{job} is disabled, so it was not triggered; enable it where it is declared.")


def _orphaned(job: Job, sessions: list[Session], now: int) -> bool:
    """Whether no live node of its pool has its handler."""
    return not any(
        session.state is Life.LIVE
        and session.expires_at > now
        and job.definition.pool in session.pools
        and (session.handlers is None or job.definition.handler in session.handlers)
        for session in sessions
    )
