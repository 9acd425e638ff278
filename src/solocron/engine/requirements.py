"""Requirements of a claim besides the job: its calendar, the sessions of the fleet, a permit, a valid definition.

A claim that lacks something says so (`Needs`, `Later`) instead of taking the job. Most jobs need nothing, so nothing of
this is fetched before a claim has asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from solocron.engine.node_context import NodeContext
from solocron.engine.permits import Permits
from solocron.engine.registrar import Registrar
from solocron.jobs.registry import Handler
from solocron.model._fast.next_slots import NextSlots
from solocron.model.change import Kind
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.scoped_pause import ScopedPause
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import Needs
from solocron.stores.contract import Applied, Due, Named, Verdict
from solocron.stores.paging import read_sessions

__all__ = ["Requirements"]


class Requirements:
    """Equips this node's claims."""

    def __init__(
        self, context: NodeContext, handlers: Mapping[str, Handler], permits: Permits, registrar: Registrar
    ) -> None:
        self._context = context
        self._handlers = handlers
        self._permits = permits
        self._registrar = registrar
        self._next_slots = NextSlots()

    def claimant(self, session: str, *, alone: bool, pauses: tuple[ScopedPause, ...]) -> Claimant:
        """Return this node as a claimant under these pauses, without sessions or permits."""
        settings = self._context.settings
        return Claimant(
            session=session,
            node=settings.node,
            late_for=settings.late_for,
            alone=alone,
            application=self._application,
            next_slots=self._next_slots,
            pauses=pauses,
            carriers={name: one.follows for name, one in self._context.carriers.items()},
            has=self._handlers.__contains__,
        )

    def selection(self, limit: int, exclude: frozenset[str], only: str | None = None) -> Due | Named:
        """Select the due jobs that this node can run; with `only`, that job alone, due or not."""
        if only is not None:
            return Named(Kind.JOB, () if only in exclude else (only,))
        return Due(handlers=frozenset(self._handlers), pools=self._context.settings.pools, limit=limit, exclude=exclude)

    def _application(self, handler: str) -> str | None:
        known = self._handlers.get(handler)
        return None if known is None else known.application

    def calendar_fetched(self, doc: object) -> bool:
        """Fetch the calendar of a job that was declined for the lack of it; True if that was the reason."""
        return isinstance(doc, Job) and self._context.calendars.learn([doc])

    def undecided(self, job: Job) -> None:
        """Report a due job that this node could not decide: its definition may have to be written first."""
        if self._registrar.note(job):
            self._context.signals.sweep.wake()

    def equip(self, needy: Mapping[str, Needs], claimants: Mapping[str, Claimant], by: Claimant) -> dict[str, Claimant]:
        """Return the claimant of each job, with what it needs; without the jobs for which no permit is free."""
        found: dict[str, Claimant] = {}
        if any(need.sessions for need in needy.values()):
            sessions = tuple(read_sessions(self._context.store))
            found |= {name: replace(by, sessions=sessions) for name, need in needy.items() if need.sessions}
        limits: dict[str, list[str]] = {}
        for name, need in needy.items():
            if need.limit is not None:
                limits.setdefault(need.limit, []).append(name)
        for limit, names in limits.items():
            try:
                taken = self._permits.take(limit, len(names), by.session)
            except BaseException:
                self.doubt(found)
                raise
            self._permits.release(taken[len(names) :], by.session)
            found |= {
                name: replace(claimants.get(name, by), permit=permit)
                for name, permit in zip(names, taken, strict=False)
            }
        return found

    def doubt(self, equipped: Mapping[str, Claimant]) -> None:
        """Mark permits whose claims may or may not stand."""
        self._permits.doubt(one.permit for one in equipped.values() if one.permit is not None)

    def use(self, applied: Applied, equipped: Mapping[str, Claimant], session: str) -> None:
        """Bind each permit to the claim that stands; doubt those of open claims; release the others.

        A refused update has no results: its session was not live, or the gate was shut.
        """
        results = {result.name: result for result in applied.results}
        for name, claimant in equipped.items():
            permit, result = claimant.permit, results.get(name)
            if permit is None:
                continue
            if result is not None and result.verdict is Verdict.UNKNOWN:
                self._permits.doubt([permit])
            elif result is None or not (isinstance(result.answer, Hold) and self._permits.owns(result.answer)):
                self._permits.release([permit], session)
        self._permits.flush()
