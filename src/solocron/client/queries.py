"""Read a namespace: its jobs, runs, nodes, limits and calendars, as frozen values. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from solocron.calendars.views import CalendarView
from solocron.calendars.views import view as calendar_view
from solocron.client.census import Census
from solocron.client.instants import check_instant
from solocron.client.job_documents import JobDocuments
from solocron.client.job_listing import JobListing, WantedJobs
from solocron.client.read_job import ReadJob
from solocron.client.run_listing import RunListing, WantedRuns
from solocron.client.run_lookup import RunLookup
from solocron.clock import to_us
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.model.documents.permit import limit_of, parse
from solocron.schedules import Schedule
from solocron.stores.contract import All
from solocron.stores.paging import read_documents, sessions_since
from solocron.views import JobView, LimitView, NodeView, RunView

__all__ = ["Queries"]


class Queries:
    """Everything that can be asked of a namespace without changing it."""

    def __init__(
        self, documents: JobDocuments, lookup: RunLookup, jobs: JobListing, runs: RunListing, census: Census
    ) -> None:
        self._documents = documents
        self._census = census
        self._jobs = jobs
        self._runs = runs
        self._lookup = lookup
        self._store = documents.store

    def jobs(self) -> list[JobView]:
        """Return every job of the namespace, by name."""
        return list(self._jobs.page(WantedJobs()).jobs)

    def get_job(self, name: str) -> JobView:
        """Return one job."""
        return self.read_job(name).view()

    def read_job(self, name: str) -> ReadJob:
        """Read one job, to ask several things about it."""
        return ReadJob(self._documents, name)

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

    def whole_run(self, id: str) -> tuple[RunView, list[RunView]]:
        """Return the last attempt of a run, or the run as it waits, and every attempt of it, from one look at both."""
        return self._lookup.whole(id)

    def attempts(self, id: str) -> list[RunView]:
        """Return every attempt of a run that has ended, runs or waits in a queue, oldest first."""
        return self._lookup.attempts(id)

    def nodes(self, *, ended: bool = False, since: datetime | None = None) -> list[NodeView]:
        """Return every node that is alive or whose runs are not yet taken over, by name.

        With `ended`, those whose end is on record follow, the latest first: a session is kept as long as records are.
        With `since`, only those of them that ended then or later.
        """
        if since is not None:
            check_instant("since", since, undone="nothing was read")
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
        for job in self._census.documents(lambda one: one.limit is not None):
            if job.definition.limit is not None:
                named.setdefault(parse(job.definition.limit)[0], []).append(job)
        permits = read_documents(self._store, All(Kind.PERMIT))
        return [
            LimitView.of(name, jobs, [permit for permit in permits if limit_of(permit.name) == name], now=now)
            for name, jobs in sorted(named.items())
        ]

    def upcoming(self, job: str, n: int = 10, *, start: datetime | None = None) -> list[datetime]:
        """Return the next slots of a job, in its zone; with `start`, the slots strictly after that instant."""
        return self.read_job(job).upcoming(n, start=start)

    def upcoming_changes(self, job: str, n: int = 10, *, start: datetime | None = None) -> list[str]:
        """Return a sentence for each slot up to the job's n-th next one that its calendar moves or leaves out."""
        return self.read_job(job).upcoming_changes(n, start=start)

    def schedule(self, job: str) -> Schedule | None:
        """Return the schedule of a job; None if it has none, or if only code knows it."""
        return self.read_job(job).schedule()

    def calendars(self) -> list[CalendarView]:
        """Return every calendar of the namespace at its latest revision, with the jobs that name it."""
        found, jobs = self._documents.latest_calendars(), self._census.jobs()
        return [calendar_view(one, [job.name for job in jobs if job.calendar == one.name]) for one in found]


def _several(given: str | Iterable[str] | None) -> frozenset[str]:
    return frozenset([given] if isinstance(given, str) else given or ())
