"""Read a namespace: its jobs, runs, nodes, limits and calendars, as frozen values. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from solocron.calendars.views import CalendarView, notes_of
from solocron.calendars.views import view as calendar_view
from solocron.client.job_documents import JobDocuments
from solocron.client.job_listing import JobListing, WantedJobs
from solocron.client.run_listing import RunListing, WantedRuns
from solocron.client.run_lookup import RunLookup
from solocron.clock import from_us, to_us
from solocron.errors import InvalidError
from solocron.model.change import Kind
from solocron.model.documents.calendar import calendar_of
from solocron.model.documents.job import Job
from solocron.model.documents.permit import limit_of, parse
from solocron.schedules import Calendared, Schedule, load_zone, rule_of
from solocron.stores.contract import All
from solocron.stores.paging import read_documents, sessions_since
from solocron.views import JobView, LimitView, NodeView, RunView

__all__ = ["Queries"]


class Queries:
    """Everything that can be asked of a namespace without changing it."""

    def __init__(self, documents: JobDocuments, lookup: RunLookup, jobs: JobListing, runs: RunListing) -> None:
        self._documents = documents
        self._jobs = jobs
        self._runs = runs
        self._lookup = lookup
        self._store = documents.store

    def jobs(self) -> list[JobView]:
        """Return every job of the namespace, by name."""
        return list(self._jobs.page(WantedJobs()).jobs)

    def get_job(self, name: str) -> JobView:
        """Return one job."""
        return self._documents.view(name)

    def runs(
        self,
        job: str | None = None,
        *,
        status: str | Iterable[str] | None = None,
        origin: str | Iterable[str] | None = None,
        node: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
    ) -> list[RunView]:
        """Return what runs, latest claim first, then the records of the log, newest first.

        A search for few among very many looks at 20,000 records at a time, until it has `limit` of them.
        """
        wanted = WantedRuns(
            job=job, statuses=_several(status), origins=_several(origin), node=node, since=since, until=until
        )
        page = self._runs.page(wanted, limit=limit)
        found = list(page.runs)
        while page.next is not None and len(found) < limit:
            page = self._runs.page(wanted, limit=limit - len(found), before=page.next)
            found += page.runs
        return found

    def get_run(self, id: str) -> RunView:
        """Return the last attempt of a run, or the run as it waits."""
        return self._lookup.get(id)[0]

    def attempts(self, id: str) -> list[RunView]:
        """Return every attempt of a run that has ended or runs, oldest first."""
        return self._lookup.attempts(id)

    def nodes(self, *, ended: bool = False, since: datetime | None = None) -> list[NodeView]:
        """Return every node that is alive or whose runs are not yet taken over, by name.

        With `ended`, those whose end is on record follow, the latest first: a session is kept as long as records are.
        With `since`, only those of them that ended then or later.
        """
        if since is not None and since.utcoffset() is None:
            raise InvalidError(f"since={since!r} has no time zone; nothing was read. Pass an aware datetime.")
        first = to_us(since) if since is not None else 0 if ended else None
        now, sessions = self._store.clock(), sessions_since(self._store, first)
        views = sorted(
            (NodeView.of(session, now=now) for session in sessions), key=lambda view: (view.node, view.session)
        )
        over = [(view.ended_at, view) for view in views if view.state == "ended" and view.ended_at is not None]
        over.sort(key=lambda one: one[0], reverse=True)
        return [*(view for view in views if view.state != "ended"), *(view for _, view in over)]

    def limits(self) -> list[LimitView]:
        """Return every limit that a job names, by name: how many may run, and which runs have the permits."""
        now, named = self._store.clock(), dict[str, list[Job]]()
        for job in self._documents.all():
            if job.definition.limit is not None and not job.removed:
                named.setdefault(parse(job.definition.limit)[0], []).append(job)
        permits = read_documents(self._store, All(Kind.PERMIT))
        return [
            LimitView.of(name, jobs, [permit for permit in permits if limit_of(permit.name) == name], now=now)
            for name, jobs in sorted(named.items())
        ]

    def upcoming(self, job: str, n: int = 10, *, start: datetime | None = None) -> list[datetime]:
        """Return the next slots of a job, in its zone; with `start`, the slots strictly after that instant."""
        if not 1 <= n <= 1_000:
            raise InvalidError(f"n={n}: give a whole number from 1 to 1000.")
        doc = self._documents.get(job)
        slots = self._documents.resolve(doc.definition.schedule)
        if not slots.known:
            raise InvalidError(
                f"{job} has a schedule of its own class, which only its code knows; ask a program that has it."
            )
        info = load_zone(str((doc.definition.schedule or {}).get("tz", "UTC"))).info
        at = max(slots.decided_until(doc.cursor, doc.nominal), self._store.clock()) if start is None else to_us(start)
        found: list[datetime] = []
        while len(found) < n:
            following = slots.after(at)
            if following is None:
                break
            found.append(from_us(following).astimezone(info))
            at = following
        return found

    def upcoming_changes(self, job: str, n: int = 10, *, start: datetime | None = None) -> list[str]:
        """Return a sentence for each slot up to the job's n-th next one that its calendar moves or leaves out."""
        slots = self.upcoming(job, n, start=start)
        rule = self.schedule(job)
        inner = None if rule is None else rule_of(rule)
        if not isinstance(inner, Calendared) or not slots:
            return []
        begin = self._store.clock() if start is None else to_us(start)
        return notes_of(inner, begin, to_us(slots[-1]))

    def schedule(self, job: str) -> Schedule | None:
        """Return the schedule of a job; None if it has none, or if only code knows it."""
        return self._documents.resolve(self._documents.get(job).definition.schedule).schedule

    def calendars(self) -> list[CalendarView]:
        """Return every calendar of the namespace at its latest revision, with the jobs that name it."""
        found = [self._documents.calendar(name) for name in sorted(self._documents.calendars.latest())]
        jobs = self._documents.all()
        return [
            calendar_view(one, [job.name for job in jobs if calendar_of(job.definition.schedule) == one.name])
            for one in found
            if one is not None
        ]


def _several(given: str | Iterable[str] | None) -> frozenset[str]:
    return frozenset([given] if isinstance(given, str) else given or ())
