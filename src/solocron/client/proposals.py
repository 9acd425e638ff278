"""Turn jobs as data into definitions, checked against the store. What all of them need is read once.

Nothing is written here, so that one wrong job among a thousand leaves all of them as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from solocron.calendars.views import unknown_calendar
from solocron.client.job_documents import JobDocuments
from solocron.errors import ConflictError, InvalidError, NotFoundError
from solocron.jobs.checks import check_name
from solocron.jobs.declaration import Declaration
from solocron.jobs.job_spec import JobSpec
from solocron.model._fast.values import replace
from solocron.model.applications import application_in, needed
from solocron.model.documents.calendar import with_revision
from solocron.model.documents.definition import Definition
from solocron.model.documents.permit import parse
from solocron.model.documents.session import Life
from solocron.near import did_you_mean
from solocron.stores.paging import sessions_since

__all__ = ["Proposals"]


class Proposals:
    """The definitions of one call; `replaced` are the jobs whose stored definitions it will replace or remove."""

    def __init__(self, documents: JobDocuments, replaced: Iterable[str] = ()) -> None:
        self._documents = documents
        self._replaced = frozenset(replaced)
        self._applications: dict[str, str | None] = {}
        self._latest: dict[str, int] | None = None
        self._limits: dict[str, tuple[str, str]] | None = None
        """By the name of a limit, a job that names it and what that job says."""

    def define(self, spec: JobSpec) -> Definition:
        """Return the definition that the store is to have; raise if it could not be run as given."""
        name = check_name(spec.name)
        given: object = spec.schedule
        if given is None:
            raise InvalidError(f"add({name!r}): a schedule is needed; nothing was added.")
        declaration = Declaration.make(spec.schedule, spec.options, name=name)
        if declaration.on_retry is not None:
            raise InvalidError(
                f"add({name!r}): on_retry lives only in code; declare it with the handler. Nothing was added."
            )
        handler = self._documents.registry.handler_of(spec.handler)
        definition, made = declaration.define(name, handler)
        if (definition.schedule or {}).get("kind") == "custom":
            raise InvalidError(
                f"{type(made).__name__} lives only in code and cannot be added as data; declare {name} there."
            )
        if handler not in self._applications:
            self._applications[handler] = self._application_of(handler)
        definition = replace(definition, application=self._applications[handler])
        self._one_bound(name, definition.limit)
        self._refuse_unreadable(name, definition)
        return definition if declaration.calendar is None else self._under(declaration.calendar, name, definition)

    def _under(self, calendar: str, name: str, definition: Definition) -> Definition:
        """Return the definition under the latest revision of its calendar."""
        if self._latest is None:
            self._latest = dict(self._documents.calendars.latest())
        if calendar not in self._latest:
            raise unknown_calendar(calendar, self._latest, job=name, untouched="Nothing was added.")
        self._documents.calendars.fetch([(calendar, self._latest[calendar])])
        return with_revision(definition, self._latest[calendar])

    def _refuse_unreadable(self, name: str, definition: Definition) -> None:
        """Refuse a definition that a live node of an older version would misread."""
        asked = needed(definition)
        if not asked:
            return
        live = (session for session in sessions_since(self._documents.store) if session.state is Life.LIVE)
        old = next((one for one in live if one.pools and not asked.issubset(one.features)), None)
        if old is not None:
            raise ConflictError(
                f"the node {old.node} is of an older version ({old.version or 'unknown'}), which knows no carriers and "
                f"would fail the runs of {name}. Nothing was added; stop it, or deploy a newer version there."
            )

    def _one_bound(self, name: str, limit: str | None) -> None:
        """Refuse a second number for a limit that another job names."""
        if limit is None:
            return
        if self._limits is None:
            gone = self._replaced | {name}
            stored = [job for job in self._documents.all() if job.definition.limit is not None and job.name not in gone]
            self._limits = {
                parse(str(job.definition.limit))[0]: (job.name, str(job.definition.limit)) for job in stored
            }
        other, said = self._limits.setdefault(parse(limit)[0], (name, limit))
        if said != limit:
            raise ConflictError(
                f"{name} says limit={limit!r} and {other} {said!r}: a limit has one number. Nothing was added."
            )

    def _application_of(self, handler: str) -> str | None:
        """Return the application that has the handler; refuse a handler that no node and no job has, mostly a typo."""
        ours = self._documents.registry.handlers.get(handler)
        if ours is not None:
            return ours.application
        sessions = [session for session in sessions_since(self._documents.store) if session.state is Life.LIVE]
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
        hint = did_you_mean(handler, known, "name a declared job or a registered function.")
        raise NotFoundError(f"no node has a handler {handler!r}; {hint} Nothing was added.")
