"""Adds and removes jobs as data, and sets a restored store right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any

from solocron.calendars import CalendarView, days_off, notes_of, save, unknown_calendar
from solocron.calendars import view as calendar_view
from solocron.client.again import PastAsker
from solocron.client.reading import PAGE, is_orphaned
from solocron.clock import to_us
from solocron.effects.locks.listing import raise_fences
from solocron.engine.recovery import change_namespace
from solocron.errors import ConflictError, InvalidError, NotFoundError, StoreError
from solocron.jobs.declaration import Declaration, check_name
from solocron.model._fast.values import replace
from solocron.model.applications import application_in, can_run
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents import namespace
from solocron.model.documents.calendar import calendar_of, with_revision
from solocron.model.documents.job import Job
from solocron.model.documents.permit import parse
from solocron.model.documents.session import Life, Session
from solocron.model.transitions import registration
from solocron.schedules import Calendar, Calendared, Schedule, Spread
from solocron.stores.contract import Named, Verdict
from solocron.views import JobView

__all__ = ["Client"]


class Client(PastAsker):
    """A view on one namespace of a store, and the hands to change it."""

    def add(self, name: str, handler: str, schedule: str | Schedule | None, **options: Any) -> JobView:
        """Add or change a job as data; its handler is the name of a declared job or of a registered function."""
        check_name(name)
        if schedule is None:
            raise InvalidError(f"add({name!r}): a schedule is needed; nothing was added.")
        try:
            declaration = Declaration.make(schedule, name=name, **options)
        except TypeError as error:
            raise InvalidError(f"{error}; nothing was added.") from None
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
            latest = self._calendars.latest()
            if declaration.calendar not in latest:
                raise unknown_calendar(declaration.calendar, latest, job=name, untouched="Nothing was added.")
            definition = with_revision(definition, latest[declaration.calendar])
            self._calendars.fetch([(declaration.calendar, latest[declaration.calendar])])
        proposal = registration.Proposal(definition=definition, source=None)

        def define(doc: Job | Absent, now: int) -> Change | None:
            if isinstance(doc, Job) and doc.source is not None and not doc.removed:
                return Change(doc, answer="!declared")
            return registration.define(
                doc, proposal=proposal, now=now, late_for=self.late_for, resolve=self._registry.resolve
            )

        answer = self._change(name, define)
        if declaration.calendar is not None:
            self._calendars.bring([name], self.late_for)
        if answer is None:
            raise ConflictError(
                f"{name} is under a revision of its calendar that is not in the store, so it was not changed; remove "
                "it and add it again."
            )
        if answer == "!declared":
            raise ConflictError(
                f"{name} is declared in code, so it was not changed; change it there, or choose another name."
            )
        return self.get_job(name)

    def remove(self, name: str) -> None:
        """Forget a job: what waits is cancelled, what runs is asked to stop."""
        doc = self._one(name)
        if doc.source is not None and not is_orphaned(doc, self._sessions(), self.store.clock()):
            raise ConflictError(
                f"{name} is declared in code that runs now, so it was not removed; take it out of the code."
            )
        self._change(
            name,
            lambda found, now: registration.remove(
                found, now=now, late_for=self.late_for, resolve=self._registry.resolve
            ),
        )

    def adopt(self, name: str) -> None:
        """Let the stored definition of a job give way to the one that live nodes declare, with a lower revision too."""
        doc = self._one(name)
        if doc.source is None:
            raise ConflictError(
                f"{name} was added as data, so no code declares it and nothing was changed; add it again."
            )
        ahead = _as_new(doc, self._live())
        if ahead is not None:
            raise ConflictError(
                f"{ahead.node} is of revision {ahead.revision or 0} and stands behind the stored definition of {name} "
                f"({doc.revision or 0}), so nothing was changed; stop it first, or deploy what it shall be."
            )
        self._change(name, lambda found, now: registration.give_way(found, now=now))

    def adopt_all(self) -> list[str]:
        """`adopt` for every job whose stored definition no live node is as new as; answers their names."""
        jobs = [job for job in self._jobs() if job.source is not None and job.revision is not None and not job.removed]
        live = self._live()
        names = [job.name for job in jobs if _as_new(job, live) is None]
        for name in names:
            self._change(name, lambda found, now: registration.give_way(found, now=now))
        return names

    def _live(self) -> list[Session]:
        now = self.store.clock()
        return [s for s in self._sessions() if s.state is Life.LIVE and s.expires_at > now]

    def restored(self) -> int:
        """After a backup was restored: move every cursor to now and raise every fence; return how many jobs.

        Nothing is claimed meanwhile. At the end the namespace is open under a new epoch, which nodes see with their
        next beat.
        """
        fence = self.store.clock() // 1_000
        identity, tokens = self.store.identity(), (self._runtime.rng.token(), self._runtime.rng.token())
        change_namespace(
            self.store, lambda doc, now: namespace.close(doc, identity=identity, known=0, token=tokens[0], now=now)
        )
        names = [job.name for job in self._jobs()]
        aside: list[str] = []
        for start in range(0, len(names), PAGE):
            aside += self._restore(tuple(names[start : start + PAGE]), fence)
        raise_fences(self.store, self._runtime, fence)
        change_namespace(
            self.store, lambda doc, now: namespace.reopen(doc, identity=identity, token=tokens[1], now=now)
        )
        if aside:
            raise StoreError(
                f"{len(aside)} jobs cannot be read and were left as they are, {aside[0]} among them; all others were "
                "moved to now, and nodes go on. See `solocron doctor`."
            )
        return len(names)

    def _restore(self, names: tuple[str, ...], fence: int) -> list[str]:
        """Move these jobs to now; return those that were set aside because they cannot be read."""
        left, aside = names, []
        for _ in range(8):
            applied = self.store.update(
                Named(Kind.JOB, left),
                lambda doc, now: registration.move_to_now(doc, fence=fence, now=now, resolve=self._registry.resolve),
            )
            aside += [result.name for result in applied.results if result.verdict is Verdict.BLOCKED]
            again = (Verdict.CONTENDED, Verdict.UNKNOWN)
            left = tuple(result.name for result in applied.results if result.verdict in again)
            if not left:
                return aside
        raise StoreError(
            f"{len(left)} jobs could not be moved to now, {left[0]} among them; the others were. "
            "Stop the nodes, see `solocron doctor`, and repeat it."
        )

    def _one_bound(self, name: str, limit: str | None) -> None:
        """A limit is one number for all jobs that name it."""
        if limit is None:
            return
        for job in self._jobs():
            other = job.definition.limit
            if other not in (None, limit) and job.name != name and parse(other)[0] == parse(limit)[0]:
                raise ConflictError(
                    f"{name} says limit={limit!r} and {job.name} {other!r}: a limit has one number. Nothing was added."
                )

    def _application_of(self, handler: str) -> str | None:
        """The application whose function it is; a handler that nobody has is a mistake more often than a plan."""
        ours = self._registry.handlers.get(handler)
        if ours is not None:
            return ours.application
        sessions = [session for session in self._sessions() if session.state is Life.LIVE]
        known = {name for session in sessions for name in session.handlers or ()}
        jobs = self._jobs()
        known |= {job.definition.handler for job in jobs} | set(self._registry.handlers)
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
        """Make or change a business calendar, for all nodes. Its jobs go on under the new revision from now on."""
        now = self.store.clock()
        wanted = days_off(name, weekend=weekend, holidays=holidays, country=country, subdivision=subdivision, now=now)
        made, jobs = save(self._calendars, wanted, late_for=self.late_for, known=self._calendar(name))
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

    def upcoming_changes(self, job: str, n: int = 10, *, start: datetime | None = None) -> list[str]:
        """What the job's calendar does to the slots up to its n-th next one, and why; a sentence each."""
        slots = self.upcoming(job, n, start=start)
        rule = self.schedule(job)
        inner = rule.schedule if isinstance(rule, Spread) else rule
        if not isinstance(inner, Calendared) or not slots:
            return []
        begin = self.store.clock() if start is None else to_us(start)
        return notes_of(inner, begin, to_us(slots[-1]))

    def _calendar(self, name: str) -> Calendar | None:
        latest = self._calendars.latest([name])
        self._calendars.fetch(latest.items())
        return self._registry.calendars.get((name, latest.get(name, 0)))


def _as_new(doc: Job, live: Iterable[Session]) -> Session | None:
    """A live node that can run the job and is of its revision, or of a later one."""
    mine = (session for session in live if can_run(session, doc.definition))
    return next((session for session in mine if (session.revision or 0) >= (doc.revision or 0)), None)
