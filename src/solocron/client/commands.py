"""Commands to jobs and runs: trigger, wait, cancel, pause, resume. Every one can be repeated without harm."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from solocron.author import check_author
from solocron.client.instants import check_instant
from solocron.client.job_documents import JobDocuments
from solocron.client.refusals import error_of
from solocron.client.run_lookup import RunLookup
from solocron.client.waiting import Waiting
from solocron.clock import from_us, to_us
from solocron.duration import parse_duration
from solocron.effects.requests import check_connection, leave
from solocron.errors import InvalidError
from solocron.jobs.checks import check_payload
from solocron.model.change import SmallDocument
from solocron.model.documents.request import leave as request_left
from solocron.model.documents.request import run_named
from solocron.model.documents.run import Origin, job_of, run_id
from solocron.model.refusals import Refusal, Refused
from solocron.model.transitions import backfill, commands
from solocron.model.transitions.shards import labels
from solocron.stores.log import is_recorded
from solocron.views import JobView, ResumeView, RunView

__all__ = ["Commands", "check_key"]

Span = timedelta | int | float | str


class Commands:
    """Changes what runs in one namespace."""

    def __init__(self, documents: JobDocuments, lookup: RunLookup) -> None:
        self._documents = documents
        self._lookup = lookup
        self._store = documents.store
        self._runtime = documents.runtime
        self._asked = 0
        """Requests made so far: orders those that one program makes within the same microsecond."""

    def trigger(
        self,
        job: str,
        payload: Any = None,
        *,
        at: datetime | None = None,
        key: str | None = None,
        shard: int | str | None = None,
        connection: Any = None,
        by: str | None = None,
        note: str | None = None,
    ) -> str:
        """Schedule a run now, or at an instant, and return its id. The same key returns the same run.

        A sharded job runs every shard, or the one named; `get_run`, `wait` and `cancel` take the id for all of them.
        With `connection` the run is requested in the transaction that is open there: no commit, no run.
        """
        if connection is not None:
            check_connection(self._store, connection)
            document = self.request(job, payload, at=at, key=key, shard=shard, by=by, note=note)
            leave(self._store, connection, document)
            return run_named(document)
        check_author(by, note, undone="nothing was triggered")
        payload, when = self._checked(job, payload, at=at, key=key)
        request, trace = key if key is not None else self._runtime.rng.token(), self._documents.trace()
        if key is not None:
            # The document keeps the latest requests and what runs, the log what has ended. Read in this order: a run
            # that ends in between is found by its record.
            doc = self._documents.get(job)
            run = run_id(job, doc.incarnation, Origin.TRIGGER, request)
            if doc.knows(run) or is_recorded(self._store, run):
                return run
        answer = self._documents.change_known(
            job,
            lambda doc, now: commands.trigger(
                doc,
                request=request,
                payload=payload,
                at=when,
                now=now,
                resolve=self._documents.resolve,
                shard=shard,
                by=by,
                note=note,
                trace=trace,
            ),
        )
        if isinstance(answer, Refusal):
            raise error_of(answer, job, undone="it was not triggered", shard=shard)
        return str(answer)

    def request(
        self,
        job: str,
        payload: Any = None,
        *,
        at: datetime | None = None,
        key: str | None = None,
        shard: int | str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> SmallDocument:
        """Return a trigger as a document that a transaction of the caller can write to the store."""
        check_author(by, note, undone="nothing was triggered")
        payload, when = self._checked(job, payload, at=at, key=key)
        doc = self._documents.get(job)
        if doc.removed:
            raise self._documents.unknown(job)
        if not doc.definition.enabled:
            raise error_of(Refusal(Refused.DISABLED), job, undone="it was not triggered")
        if shard is not None and str(shard) not in map(str, labels(doc.definition.shards or ())):
            raise error_of(Refusal(Refused.NO_SHARD), job, undone="it was not triggered", shard=shard)
        request, rng = key if key is not None else self._runtime.rng.token(), self._runtime.rng
        self._asked += 1
        return request_left(
            run=run_id(job, doc.incarnation, Origin.TRIGGER, request),
            request=request,
            payload=payload,
            at=when,
            shard=shard,
            keyed=key is not None,
            asked=(self._runtime.clock.wall(), self._asked),
            token=rng.token(),
            by=by,
            note=note,
        )

    @staticmethod
    def _checked(job: str, payload: Any, *, at: datetime | None, key: str | None) -> tuple[Any, int | None]:
        if payload is not None:
            payload = check_payload(payload, whose=f"a trigger of {job}")
        check_key(key)
        if at is not None:
            check_instant("at", at, undone="nothing was triggered")
        return payload, None if at is None else to_us(at)

    def wait(self, run: str, timeout: Span | None = None) -> RunView:
        """Wait until a run is over, retries included, and return its last attempt."""
        waiting, sleeper = self.waiting(run, timeout), self._runtime.event()
        while (view := waiting.look()) is None:
            sleeper.wait(waiting.pause)
        return view

    def waiting(self, run: str, timeout: Span | None = None) -> Waiting:
        """Return a wait whose caller sleeps between two looks, so that it needs no thread."""
        limit = None if timeout is None else parse_duration(timeout, what="timeout").total_seconds()
        return Waiting(run, limit, find=lambda: self._lookup.get(run), clock=self._runtime.clock)

    def cancel(self, run: str, *, by: str | None = None, note: str | None = None) -> str:
        """Stop a run; its record says by whom and why.

        Return "asked" if a node has to stop it, "cancelled" if it was waiting, or its status if it is over.
        """
        check_author(by, note, undone="nothing was cancelled")
        known = by is not None or note is not None
        reason = commands.reason_of("cancelled", by, note) if known else "cancelled by request"
        name = job_of(run)
        answer = None
        if name:
            answer = self._documents.change(
                name,
                lambda doc, now: (
                    commands.cancel(doc, run=run, reason=reason, now=now, resolve=self._documents.resolve)
                    or backfill.cancel_backfill(doc, run=run, reason=reason, now=now, resolve=self._documents.resolve)
                ),
            )
        return str(answer) if answer is not None else self._lookup.get(run)[0].status

    def pause(
        self, job: str, *, by: str | None = None, note: str | None = None, until: datetime | None = None
    ) -> JobView:
        """Start nothing more of this job by schedule, until it is resumed or until an instant."""
        check_author(by, note, undone="nothing was paused")
        if until is not None:
            check_instant("until", until, undone="nothing was paused")
        end = None if until is None else to_us(until)
        if end is not None and end <= self._store.clock():
            raise InvalidError(f"until={until} is in the past; nothing was paused.")
        pauses = self._documents.pauses()
        self._documents.change_known(
            job,
            lambda doc, now: commands.pause(
                doc,
                by=by,
                note=note,
                until=end,
                now=now,
                late_for=self._documents.late_for,
                resolve=self._documents.resolve,
                pauses=pauses,
            ),
        )
        return self._documents.view(job)

    def resume(self, job: str, *, by: str | None = None, note: str | None = None) -> JobView:
        """Resume a paused job; the slots of the pause are recorded as skipped."""
        check_author(by, note, undone="nothing was resumed")
        self._documents.change_known(
            job, lambda doc, now: commands.resume(doc, now=now, resolve=self._documents.resolve, by=by, note=note)
        )
        return self._documents.view(job)

    def resume_preview(self, job: str) -> ResumeView:
        """Return what `resume` would do now: slots to skip, waiting runs to start, the next slot."""
        doc, now = self._documents.get(job), self._store.clock()
        if not self._documents.resolve(doc.definition.schedule).known:
            raise InvalidError(
                f"{job} has a schedule of its own class, which only its code knows; ask a program that has it."
            )
        pauses = self._documents.pauses()
        plan = commands.preview_resume(
            doc, now=now, late_for=self._documents.late_for, resolve=self._documents.resolve, pauses=pauses
        )
        return ResumeView(
            job=job,
            paused=self._documents.view_of(doc, [], now).paused,
            skipped=plan.skipped,
            missed=plan.missed,
            first=None if plan.first is None else from_us(plan.first),
            last=None if plan.last is None else from_us(plan.last),
            waiting=plan.waiting,
            next=self._documents.view_of(plan.job, [], now, pauses).next,
        )


def check_key(key: str | None) -> None:
    """Refuse a key that cannot be stored."""
    if key is not None and (not isinstance(key, str) or not 0 < len(key) <= 256 or not key.isprintable()):
        raise InvalidError(f"key={key!r:.80} cannot be used: 1 to 256 printable characters. Nothing was triggered.")
