"""Turns triggers that were left by committed transactions into runs: each into one, whichever node dies on the way.

A request is held before it is read, written as a run only while the holder's session is live, and removed after that. A
successor that finds one half done sees in the job and in the log whether its run exists. While the namespace is not
open, requests wait: a backup may have brought one back that became a run long ago, and `solocron restored` decides it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from solocron.engine.attempts import Attempts
from solocron.engine.namespace_gate import NamespaceGate
from solocron.engine.node_context import NodeContext
from solocron.lease.trust import Standing
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents import request
from solocron.model.documents.job import Job
from solocron.stores.contract import All, Named, Result, Store, Verdict
from solocron.stores.log import is_recorded

__all__ = ["TransactionalTriggers", "is_known"]

PAGE = 500
"""Requests in one go; the runs of one job wait in the order of the requests within it."""

ASIDE = 60.0
"""Seconds for which the requests of a broken job are left where they are; they are not lost."""


class TransactionalTriggers:
    """Runs after every change in the store, and at intervals."""

    def __init__(self, context: NodeContext, attempts: Attempts, gate: NamespaceGate) -> None:
        self._context = context
        self._attempts = attempts
        self._gate = gate
        self._aside: dict[str, float] = {}
        """Jobs that cannot be changed at all, with the time until which their requests are left alone."""

    def step(self) -> None:
        """Take in every request that no other node holds."""
        after = ""
        while True:
            session = self._attempts.lease.session
            if session is None or self._attempts.draining or self._attempts.lease.standing() is not Standing.HELD:
                return
            if not self._gate.is_open:
                return
            page = self._context.store.read(All(Kind.REQUEST, after=after, limit=PAGE))
            free = [note for note in page if isinstance(note, SmallDocument) and self._is_free(note, session)]
            if free and not self._take_in(free, session):
                return
            if len(page) < PAGE:
                return
            after = page[-1].name

    def _is_free(self, note: SmallDocument, session: str) -> bool:
        until = self._aside.get(request.job_named(note), 0.0)
        return note.session in (None, session) and self._context.runtime.clock.boot() >= until

    def _take_in(self, free: Sequence[SmallDocument], session: str) -> bool:
        """Turn requests into runs; False if the session is no longer live, and nothing may be written."""
        held = self._change(free, partial(request.hold, session=session), session)
        if held is None:
            return False
        notes = [
            result.doc for result in held if result.verdict is Verdict.APPLIED and isinstance(result.doc, SmallDocument)
        ]
        self._context.runtime.failpoint("request-held")
        fresh = [note for note in notes if not (request.may_be_known(note) and is_known(self._context.store, note))]
        done = [note for note in notes if note not in fresh]
        if fresh:
            accepted = self._accept(fresh, session)
            if accepted is None:
                return False
            done += accepted
        self._context.runtime.failpoint("request-accepted")
        return not done or self._change(done, partial(request.taken_in, session=session), session) is not None

    def _accept(self, fresh: Sequence[SmallDocument], session: str) -> list[SmallDocument] | None:
        """Write the runs; return the requests that are decided, None if the session is gone."""
        of_job = request.by_job(fresh)

        def change(doc: Job | Absent, now: int) -> Change | None:
            return request.accept(doc, left=of_job[doc.name], now=now, resolve=self._context.resolve)

        applied = self._context.store.update(
            Named(Kind.JOB, tuple(sorted(of_job))), change, session=session, gate=self._gate.gate()
        )
        if applied.shut or not applied.alive:
            self._gate.shut()
            self._context.signals.keep.wake()
            return None
        decided: list[SmallDocument] = []
        for result in applied.results:
            if result.verdict in (Verdict.APPLIED, Verdict.DECLINED):
                decided += of_job[result.name]
                self._report(result, of_job[result.name])
            elif result.verdict is Verdict.BLOCKED:
                self._context.events.emit("job blocked", job=result.name, error=result.error)
                self._aside[result.name] = self._context.runtime.clock.boot() + ASIDE
        return decided

    def _report(self, result: Result, notes: Sequence[SmallDocument]) -> None:
        job = result.doc if result.verdict is Verdict.APPLIED and isinstance(result.doc, Job) else None
        if job is not None:
            self._wake_claimer(job)
        for note in notes:
            run = request.run_named(note)
            if job is not None and request.is_of(note, job):
                self._context.events.emit("request accepted", job=result.name, run=run)
            else:
                self._context.events.emit("request dropped", job=result.name, run=run)

    def _wake_claimer(self, job: Job) -> None:
        if job.due_at is not None:
            self._context.signals.claim.due(self._attempts.lease.boot_of(job.due_at))

    def _change(
        self, notes: Sequence[SmallDocument], change: Callable[[SmallDocument | Absent], Change | None], session: str
    ) -> Sequence[Result] | None:
        names = tuple(sorted(note.name for note in notes))
        applied = self._context.store.update(Named(Kind.REQUEST, names), lambda doc, now: change(doc), session=session)
        return applied.results if applied.alive else None


def is_known(store: Store, note: SmallDocument) -> bool:
    """Return whether its run exists. The job before the log: a run that ends in between is found by its record."""
    run = request.run_named(note)
    for job in store.read(Named(Kind.JOB, (request.job_named(note),))):
        if isinstance(job, Job) and job.knows(run):
            return True
    return is_recorded(store, run)
