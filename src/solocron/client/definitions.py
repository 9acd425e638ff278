"""Add, change and remove jobs and calendars as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Unpack

from solocron.author import check_author
from solocron.calendars.content import days_off
from solocron.calendars.saving import save
from solocron.calendars.views import CalendarView
from solocron.calendars.views import view as calendar_view
from solocron.client.job_documents import JobDocuments, is_orphaned
from solocron.client.proposals import Proposals
from solocron.client.refusals import error_of
from solocron.errors import ConflictError
from solocron.jobs.job_spec import JobSpec
from solocron.jobs.options import AddOptions
from solocron.model.applications import can_run
from solocron.model.change import Absent, Change
from solocron.model.documents.calendar import calendar_of
from solocron.model.documents.job import Job
from solocron.model.documents.run import plain
from solocron.model.documents.session import Session
from solocron.model.refusals import Refusal, Refused
from solocron.model.transitions import registration
from solocron.model.transitions.commands import reason_of
from solocron.schedules import Schedule
from solocron.stores.paging import live_sessions, sessions_since
from solocron.views import JobView

__all__ = ["Definitions"]


class Definitions:
    """Adds, changes and removes jobs and calendars."""

    def __init__(self, documents: JobDocuments) -> None:
        self._documents = documents
        self._store = documents.store

    def add(
        self,
        name: str,
        handler: str,
        schedule: str | Schedule,
        *,
        by: str | None = None,
        note: str | None = None,
        **options: Unpack[AddOptions],
    ) -> JobView:
        """Add or change a job as data; its handler is the name of a declared job or of a registered function."""
        check_author(by, note, undone="nothing was added")
        definition = Proposals(self._documents).define(JobSpec(name, handler, schedule, **options))
        proposal = registration.Proposal(definition=definition, source=None, by=plain(by), note=plain(note))
        pauses = self._documents.pauses()

        def define(doc: Job | Absent, now: int) -> Change | None:
            if isinstance(doc, Job) and doc.source is not None and not doc.removed:
                return Change(doc, answer=Refusal(Refused.DECLARED))
            return registration.define(
                doc, proposal=proposal, now=now, late_for=self._documents.late_for, resolve=self._documents.resolve,
                pauses=pauses,
            )  # fmt: skip

        answer = self._documents.change(name, define)
        if calendar_of(definition.schedule) is not None:
            self._documents.calendars.bring([name], self._documents.late_for)
        if answer is None:
            raise ConflictError(
                f"{name} is under a revision of its calendar that is not in the store, so it was not changed; remove "
                "it and add it again."
            )
        if isinstance(answer, Refusal):
            raise error_of(answer, name, undone="it was not changed")
        return self._documents.view(name)

    def remove(self, name: str, *, by: str | None = None, note: str | None = None) -> None:
        """Remove a job: its waiting runs are cancelled, its running ones are asked to stop."""
        check_author(by, note, undone="nothing was removed")
        reason = reason_of("the job was removed", by, note)
        doc = self._documents.get(name)
        if doc.source is not None and not is_orphaned(doc, sessions_since(self._store), self._store.clock()):
            raise ConflictError(
                f"{name} is declared in code that runs now, so it was not removed; take it out of the code."
            )
        pauses = self._documents.pauses()
        self._documents.change(
            name,
            lambda found, now: registration.remove(
                found,
                now=now,
                late_for=self._documents.late_for,
                resolve=self._documents.resolve,
                pauses=pauses,
                reason=reason,
            ),
        )

    def adopt(self, name: str) -> None:
        """Let live nodes write their definition of a job over the stored one, even with a lower revision."""
        doc = self._documents.get(name)
        if doc.source is None:
            raise ConflictError(
                f"{name} was added as data, so no code declares it and nothing was changed; add it again."
            )
        ahead = _as_new(doc, live_sessions(self._store))
        if ahead is not None:
            raise ConflictError(
                f"{ahead.node} is of revision {ahead.revision or 0} and stands behind the stored definition of {name} "
                f"({doc.revision or 0}), so nothing was changed; stop it first, or deploy what it shall be."
            )
        self._documents.change(name, lambda found, now: registration.give_way(found, now=now))

    def adopt_all(self) -> list[str]:
        """Adopt every job whose stored definition is newer than that of each live node; return their names."""
        jobs = [
            job
            for job in self._documents.all()
            if job.source is not None and job.revision is not None and not job.removed
        ]
        live = live_sessions(self._store)
        names = [job.name for job in jobs if _as_new(job, live) is None]
        for name in names:
            self._documents.change(name, lambda found, now: registration.give_way(found, now=now))
        return names

    def calendar(
        self,
        name: str,
        *,
        weekend: Iterable[str] = ("sat", "sun"),
        holidays: Iterable[date] | Mapping[date, str] = (),
        country: str | None = None,
        subdivision: str | None = None,
    ) -> CalendarView:
        """Create or change a business calendar for all nodes; its jobs follow the new revision from now on."""
        now = self._store.clock()
        wanted = days_off(name, weekend=weekend, holidays=holidays, country=country, subdivision=subdivision, now=now)
        made, jobs = save(
            self._documents.calendars, wanted, late_for=self._documents.late_for, known=self._documents.calendar(name)
        )
        self._documents.notify()
        return calendar_view(made, jobs)


def _as_new(doc: Job, live: Iterable[Session]) -> Session | None:
    """Return a live session that can run the job and has its revision or a later one."""
    mine = (session for session in live if can_run(session, doc.definition))
    return next((session for session in mine if (session.revision or 0) >= (doc.revision or 0)), None)
