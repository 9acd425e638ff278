"""The job documents of one namespace: how the client reads them, and the one way in which it changes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from solocron.calendars.revisions import Calendars
from solocron.clock import SECOND
from solocron.errors import InvalidError, NotFoundError, StoreError
from solocron.jobs.registry import Registry
from solocron.model.applications import can_run
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.scoped_pause import KeptBack, ScopedPause, kept_back
from solocron.model.documents.session import Session, is_live
from solocron.model.timetable import Resolve
from solocron.runtime import Runtime
from solocron.schedules import Calendar, instants
from solocron.stores.contract import ChangeFn, Named, Store, Verdict
from solocron.stores.paging import find_job, iter_jobs, read_pauses, sessions_since
from solocron.stores.until_known import update_until_known
from solocron.views import JobView

__all__ = ["OVERDUE", "JobDocuments", "is_orphaned"]

OVERDUE = 300 * SECOND
"""Microseconds after which a job that is due and not claimed is late."""
_FETCHES = 3
"""Times that calendars are fetched for one change: others may put the job under a new revision meanwhile."""
_FETCH_FIRST = object()
"""The answer of a change that cannot be made before a calendar has been fetched."""


class JobDocuments:
    """Reads and changes job documents; fetches the calendars that their schedules name."""

    def __init__(self, store: Store, registry: Registry, runtime: Runtime, late_for: int) -> None:
        self.store = store
        self.registry = registry
        self.runtime = runtime
        self.late_for = late_for
        self.calendars = Calendars(store, registry)
        self.changed: list[Callable[[], None]] = []
        self.trace: Callable[[], str | None] = lambda: None
        """Returns the trace that the caller is in, where the program has tracing; triggers keep it."""

    @property
    def resolve(self) -> Resolve:
        return self.registry.resolve

    def all(self) -> list[Job]:
        """Read every job by name, removed ones included."""
        found = list(iter_jobs(self.store))
        self.calendars.learn(found)
        return found

    def get(self, name: str) -> Job:
        """Read one job; raise if there is none."""
        found = find_job(self.store, name)
        if found is None:
            raise self.unknown(name)
        self.calendars.learn([found])
        return found

    def unknown(self, name: str) -> NotFoundError:
        """Return the error for a name that no job has.

        It suggests no other name: jobs may be tenants' data, and an application may show its errors to one of them. The
        command line, which an operator uses, does.
        """
        return NotFoundError(f"there is no job {name!r} in namespace {self.store.namespace!r}. Nothing was changed.")

    def view(self, name: str) -> JobView:
        """Read one job for a caller of the API."""
        return self.view_of(self.get(name), sessions_since(self.store), self.store.clock(), self.pauses())

    def pauses(self) -> tuple[ScopedPause, ...]:
        """Read the pauses of many jobs at once, which whatever decides slots has to consider."""
        return read_pauses(self.store)

    def view_of(self, job: Job, sessions: list[Session], now: int, pauses: Sequence[ScopedPause] = ()) -> JobView:
        """Return a job as callers of the API see it; a schedule that cannot be read is said in the view, not raised."""
        orphaned = is_orphaned(job, sessions, now)
        holders = {one.name: one for one in sessions} if job.active else {}
        try:
            slots = self.resolve(job.definition.schedule)
        except InvalidError as error:  # a job that this release or its zone data cannot read must not hide the others
            return JobView.of(
                job, None, following=None, orphaned=orphaned, sessions=holders, now=now, unreadable=str(error),
                pauses=pauses,
            )  # fmt: skip
        following = None
        free = job.paused is None and kept_back(pauses, job, now=now) is KeptBack.NOTHING
        if free and job.definition.enabled and slots.schedule is not None:
            following = instants.after(slots.schedule, max(slots.decided_until(job.cursor, job.nominal), now))
        return JobView.of(
            job, slots.schedule, following=following, orphaned=orphaned, sessions=holders, now=now, pauses=pauses
        )

    def calendar(self, name: str) -> Calendar | None:
        """Return a calendar at its latest revision; None if there is none of that name."""
        latest = self.calendars.latest([name])
        self.calendars.fetch(latest.items())
        return self.registry.calendars.get((name, latest.get(name, 0)))

    def latest_calendars(self) -> list[Calendar]:
        """Return every calendar at its latest revision, by name."""
        latest = self.calendars.latest()
        self.calendars.fetch(latest.items())
        known = self.registry.calendars
        return [known[one] for one in sorted(latest.items()) if one in known]

    def notify(self) -> None:
        """Tell the node of this process that something was changed."""
        for call in self.changed:
            call()

    def change_known(self, name: str, change: ChangeFn) -> Any:
        """Apply one change to a job that must exist, and return the change's answer."""
        answer = self.change(name, change)
        if answer is None:
            raise self.unknown(name)
        return answer

    def change(self, name: str, change: ChangeFn) -> Any:
        """Apply one change and return its answer, None if it declined.

        Requests carry ids of their own, so a change whose outcome is contended or unknown is repeated without harm.
        """

        def informed(doc: Job | Absent, now: int) -> Change | None:
            if isinstance(doc, Job) and self.calendars.unknown(doc) and not in_vain:
                return Change(doc, answer=_FETCH_FIRST)
            return change(doc, now)

        in_vain = False
        for _ in range(_FETCHES):
            result = update_until_known(self.store, Named(Kind.JOB, (name,)), informed).results[0]
            if result.answer is _FETCH_FIRST:
                in_vain = not self.calendars.learn([result.doc] if isinstance(result.doc, Job) else [])
                continue
            if result.verdict is Verdict.APPLIED:
                self.notify()
                return result.answer
            if result.verdict is Verdict.DECLINED:
                return None
            if result.verdict is Verdict.BLOCKED:
                raise StoreError(f"{name} could not be changed: {result.error}; nothing was written.")
        raise StoreError(
            f"{name} could not be changed: other clients keep changing it, or the store does not respond; try again."
        )


def is_orphaned(job: Job, sessions: list[Session], now: int) -> bool:
    """Return whether no live node of the job's pool has its handler."""
    return not any(is_live(session, now=now) and can_run(session, job.definition) for session in sessions)
