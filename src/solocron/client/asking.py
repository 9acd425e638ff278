"""Asks things of jobs: trigger, wait, cancel, pause, resume. Every request can be repeated without harm."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from solocron.client.reading import Reader
from solocron.client.waiting import Waiting
from solocron.clock import SECOND, from_us, to_us
from solocron.duration import parse_duration
from solocron.effects.requests import check_connection, leave
from solocron.errors import ConflictError, InvalidError, NotFoundError, StoreError
from solocron.jobs.declaration import check_payload
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents.job import Job
from solocron.model.documents.request import leave as request_left
from solocron.model.documents.request import run_named
from solocron.model.documents.run import Origin, job_of, run_id
from solocron.model.policy import QUEUE_LIMIT
from solocron.model.transitions import backfill, commands
from solocron.model.transitions.shards import labels
from solocron.stores.contract import ChangeFn, Named, Query, Verdict
from solocron.views import JobView, ResumeView, RunView

__all__ = ["Asker", "check_key"]

Span = timedelta | int | float | str
_FETCH_FIRST = object()
"""The answer of a change that cannot be made before a calendar has been fetched."""


class Asker(Reader):
    """A view on one namespace, and the hands to change what runs in it."""

    def trigger(
        self,
        job: str,
        payload: Any = None,
        *,
        at: datetime | None = None,
        key: str | None = None,
        shard: int | str | None = None,
        connection: Any = None,
    ) -> str:
        """Run a job now, or at an instant; answers the run's id. The same key twice is one run.

        A sharded job runs every shard, or the one named; `run`, `wait` and `cancel` take the answer for all of them.
        With `connection`, in the transaction that is open there: no commit, no run.
        """
        if connection is not None:
            check_connection(self.store, connection)
            note = self.request(job, payload, at=at, key=key, shard=shard)
            leave(self.store, connection, note)
            return run_named(note)
        payload, when = self._checked(job, payload, at=at, key=key)
        request = key if key is not None else self._runtime.rng.token()
        if key is not None:
            # The document remembers its last requests; the log remembers the rest.
            doc = self._one(job)
            run = run_id(job, doc.incarnation, Origin.TRIGGER, request)
            if any(self.store.history(Query(run=known, limit=1)) for known in (run, f"{run}#0")):
                return run
        answer = self._ask(
            job,
            lambda doc, now: commands.trigger(
                doc, request=request, payload=payload, at=when, now=now, resolve=self._registry.resolve, shard=shard
            ),
        )
        if answer == "!shard":
            raise _no_shard(job, shard)
        if answer == "!disabled":
            raise _disabled(job)
        if answer == "!full":
            raise ConflictError(
                f"{QUEUE_LIMIT} runs of {job} wait already, so it was not triggered; see `solocron runs {job}`."
            )
        return str(answer)

    def request(
        self,
        job: str,
        payload: Any = None,
        *,
        at: datetime | None = None,
        key: str | None = None,
        shard: int | str | None = None,
    ) -> SmallDocument:
        """A trigger as a document that a transaction of the caller's own can leave in the store."""
        payload, when = self._checked(job, payload, at=at, key=key)
        doc = self._one(job)
        if doc.removed:
            raise self._unknown(job)
        if not doc.definition.enabled:
            raise _disabled(job)
        if shard is not None and str(shard) not in map(str, labels(doc.definition.shards or ())):
            raise _no_shard(job, shard)
        request, rng = key if key is not None else self._runtime.rng.token(), self._runtime.rng
        self._asked += 1
        return request_left(
            run=run_id(job, doc.incarnation, Origin.TRIGGER, request),
            request=request,
            payload=payload,
            at=when,
            shard=shard,
            keyed=key is not None,
            asked=(round(self._runtime.clock.wall() * SECOND), self._asked),
            token=rng.token(),
        )

    @staticmethod
    def _checked(job: str, payload: Any, *, at: datetime | None, key: str | None) -> tuple[Any, int | None]:
        if payload is not None:
            payload = check_payload(payload, whose=f"a trigger of {job}")
        check_key(key)
        if at is not None and at.utcoffset() is None:
            raise InvalidError(f"at={at!r} has no time zone; nothing was triggered. Hand over an aware datetime.")
        return payload, None if at is None else to_us(at)

    def wait(self, run: str, timeout: Span | None = None) -> RunView:
        """Wait until a run is over, retries included; answers its last attempt."""
        waiting, sleeper = self.waiting(run, timeout), self._runtime.event()
        while (view := waiting.look()) is None:
            sleeper.wait(waiting.pause)
        return view

    def waiting(self, run: str, timeout: Span | None = None) -> Waiting:
        """A wait whose caller does the pausing, and so needs no thread for it."""

        def find() -> tuple[RunView, bool]:
            found = self._find(run)
            if found is None:
                raise NotFoundError(f"there is no run {run!r} in namespace {self.store.namespace!r}.")
            return found

        limit = None if timeout is None else parse_duration(timeout, what="timeout").total_seconds()
        return Waiting(run, limit, find=find, clock=self._runtime.clock)

    def cancel(self, run: str, *, reason: str = "cancelled by request") -> str:
        """Stop a run: "asked" when a node has to stop it, "cancelled" when it only waited, or its end if it is over."""
        name = job_of(run)
        answer = None
        if name:
            answer = self._change(
                name,
                lambda doc, now: (
                    commands.cancel(doc, run=run, reason=reason, now=now, resolve=self._registry.resolve)
                    or backfill.cancel_backfill(doc, run=run, reason=reason, now=now, resolve=self._registry.resolve)
                ),
            )
        return str(answer) if answer is not None else self.get_run(run).status

    def pause(
        self, job: str, *, by: str | None = None, note: str | None = None, until: datetime | None = None
    ) -> JobView:
        """Start nothing more of this job by schedule, until it is resumed or until an instant."""
        if until is not None and until.utcoffset() is None:
            raise InvalidError(f"until={until!r} has no time zone; nothing was paused. Hand over an aware datetime.")
        end = None if until is None else to_us(until)
        if end is not None and end <= self.store.clock():
            raise InvalidError(f"until={until} is over already; nothing was paused.")
        self._ask(
            job,
            lambda doc, now: commands.pause(
                doc, by=by, note=note, until=end, now=now, late_for=self.late_for, resolve=self._registry.resolve
            ),
        )
        return self.get_job(job)

    def resume(self, job: str) -> JobView:
        """Go on; the slots of the pause are on record as skipped."""
        self._ask(job, lambda doc, now: commands.resume(doc, now=now, resolve=self._registry.resolve))
        return self.get_job(job)

    def resume_preview(self, job: str) -> ResumeView:
        """What `resume` would do now: how many slots are skipped, what waits and starts, and when the next slot is."""
        doc, now = self._one(job), self.store.clock()
        if not self._registry.resolve(doc.definition.schedule).known:
            raise InvalidError(
                f"{job} has a schedule of its own class, which only its code knows; ask a program that has it."
            )
        plan = commands.preview_resume(doc, now=now, late_for=self.late_for, resolve=self._registry.resolve)
        return ResumeView(
            job=job,
            paused=self._view(doc, [], now).paused,
            skipped=plan.skipped,
            missed=plan.missed,
            first=None if plan.first is None else from_us(plan.first),
            last=None if plan.last is None else from_us(plan.last),
            waiting=plan.waiting,
            next=self._view(plan.job, [], now).next,
        )

    def _ask(self, name: str, change: ChangeFn) -> Any:
        answer = self._change(name, change)
        if answer is None:
            raise self._unknown(name)
        return answer

    def _change(self, name: str, change: ChangeFn) -> Any:
        """Apply one change; requests carry ids of their own, so what is contended or unknown is simply repeated."""

        def informed(doc: Job | Absent, now: int) -> Change | None:
            if isinstance(doc, Job) and self._calendars.unknown(doc) and not in_vain:
                return Change(doc, answer=_FETCH_FIRST)
            return change(doc, now)

        in_vain = False
        for _ in range(8):
            result = self.store.update(Named(Kind.JOB, (name,)), informed).results[0]
            if result.answer is _FETCH_FIRST:
                in_vain = not self._calendars.learn([result.doc] if isinstance(result.doc, Job) else [])
                continue
            if result.verdict is Verdict.APPLIED:
                for call in self.changed:
                    call()
                return result.answer
            if result.verdict is Verdict.DECLINED:
                return None
            if result.verdict is Verdict.BLOCKED:
                raise StoreError(f"{name} could not be changed: {result.error}; nothing was written.")
        raise StoreError(
            f"{name} could not be changed: others keep changing it or the store does not answer; try again."
        )


def _no_shard(job: str, shard: int | str | None) -> InvalidError:
    return InvalidError(f"{job} has no shard {shard!r}, so it was not triggered; `solocron jobs {job}` shows them.")


def _disabled(job: str) -> ConflictError:
    return ConflictError(f"{job} is disabled, so it was not triggered; enable it where it is declared.")


def check_key(key: str | None) -> None:
    if key is not None and (not isinstance(key, str) or not 0 < len(key) <= 256 or not key.isprintable()):
        raise InvalidError(f"key={key!r:.80} cannot be used: 1 to 256 printable characters. Nothing was triggered.")
