"""Add, change and remove jobs and calendars as data."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Unpack

from solocron.calendars.content import days_off
from solocron.calendars.saving import save
from solocron.calendars.views import CalendarView, unknown_calendar
from solocron.calendars.views import view as calendar_view
from solocron.client.job_documents import JobDocuments, is_orphaned
from solocron.client.refusals import error_of
from solocron.errors import ConflictError, InvalidError, NotFoundError
from solocron.jobs.checks import check_name
from solocron.jobs.declaration import Declaration
from solocron.jobs.options import AddOptions
from solocron.model._fast.values import replace
from solocron.model.applications import application_in, can_run
from solocron.model.change import Absent, Change
from solocron.model.documents.calendar import with_revision
from solocron.model.documents.job import Job
from solocron.model.documents.permit import parse
from solocron.model.documents.session import Life, Session
from solocron.model.refusals import Refusal, Refused
from solocron.model.transitions import registration
from solocron.schedules import Schedule
from solocron.stores.paging import live_sessions, read_sessions
from solocron.views import JobView

__all__ = ["Definitions"]


class Definitions:
    """Adds, changes and removes jobs and calendars."""

    def __init__(self, documents: JobDocuments) -> None:
        self._documents = documents
        self._store = documents.store

    def add(self, name: str, handler: str, schedule: str | Schedule | None, **options: Unpack[AddOptions]) -> JobView:
        """Add or change a job as data; its handler is the name of a declared job or of a registered function."""
        check_name(name)
        if schedule is None:
            raise InvalidError(f"add({name!r}): a schedule is needed; nothing was added.")
        declaration = Declaration.make(schedule, options, name=name)
        if declaration.on_retry is not None:
            raise InvalidError(
                f"add({name!r}): on_retry lives only in code; declare it with the handler. Nothing was added."
            )
        definition, made = declaration.define(name, handler)
        if (definition.schedule or {}).get("kind") == "custom":
            raise InvalidError(
                f"{type(made).__name__} lives only in code and cannot be added as data; declare {name} there."
            )
        definition = replace(definition, application=self._application_of(handler))
        self._one_bound(name, definition.limit)
        if declaration.calendar is not None:
            latest = self._documents.calendars.latest()
            if declaration.calendar not in latest:
                raise unknown_calendar(declaration.calendar, latest, job=name, untouched="Nothing was added.")
            definition = with_revision(definition, latest[declaration.calendar])
            self._documents.calendars.fetch([(declaration.calendar, latest[declaration.calendar])])
        proposal, pauses = registration.Proposal(definition=definition, source=None), self._documents.pauses()

        def define(doc: Job | Absent, now: int) -> Change | None:
            if isinstance(doc, Job) and doc.source is not None and not doc.removed:
                return Change(doc, answer=Refusal(Refused.DECLARED))
            return registration.define(
                doc, proposal=proposal, now=now, late_for=self._documents.late_for, resolve=self._documents.resolve,
                pauses=pauses,
            )  # fmt: skip

        answer = self._documents.change(name, define)
        if declaration.calendar is not None:
            self._documents.calendars.bring([name], self._documents.late_for)
        if answer is None:
            raise ConflictError(
                f"{name} is under a revision of its calendar that is not in the store, so it was not changed; remove "
                "it and add it again."
            )
        if isinstance(answer, Refusal):
            raise error_of(answer, name, undone="it was not changed")
        return self._documents.view(name)

    def remove(self, name: str) -> None:
        """Remove a job: its waiting runs are cancelled, its running ones are asked to stop."""
        doc = self._documents.get(name)
        if doc.source is not None and not is_orphaned(doc, read_sessions(self._store), self._store.clock()):
            raise ConflictError(
                f"{name} is declared in code that runs now, so it was not removed; take it out of the code."
            )
        pauses = self._documents.pauses()
        self._documents.change(
            name,
            lambda found, now: registration.remove(
                found, now=now, late_for=self._documents.late_for, resolve=self._documents.resolve, pauses=pauses
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

    def _one_bound(self, name: str, limit: str | None) -> None:
        """Refuse a second number for a limit that another job names."""
        if limit is None:
            return
        for job in self._documents.all():
            other = job.definition.limit
            if other not in (None, limit) and job.name != name and parse(other)[0] == parse(limit)[0]:
                raise ConflictError(
                    f"{name} says limit={limit!r} and {job.name} {other!r}: a limit has one number. Nothing was added."
                )

    def _application_of(self, handler: str) -> str | None:
        """Return the application that has the handler; refuse a handler that no node and no job has, mostly a typo."""
        ours = self._documents.registry.handlers.get(handler)
        if ours is not None:
            return ours.application
        sessions = [session for session in read_sessions(self._store) if session.state is Life.LIVE]
        known = {name for session in sessions for name in session.handlers or ()}
        jobs = self._documents.all()
        known |= {job.definition.handler for job in jobs} | set(self._documents.registry.handlers)
        if handler in known or any(session.handlers is None for session in sessions):
            found = {application_in(session, handler) for session in sessions} - {None}
            stored = {job.definition.application for job in jobs if job.definition.handler == handler} - {None}
            found = found or stored
            if len(found) > 1:
                raise ConflictError(
                    f"the handler {handler!r} is that of {' and of '.join(sorted(map(str, found)))}: two applications "
                    "have a function of that name, and this program has none. Nothing was added; add the job from the "
                    "application whose function it shall call, or give each application a namespace of its own."
                )
            return found.pop() if found else None
        close = difflib.get_close_matches(handler, sorted(known), n=1)
        hint = f"did you mean {close[0]!r}?" if close else "name a declared job or a registered function."
        raise NotFoundError(f"no node has a handler {handler!r}; {hint} Nothing was added.")

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
