"""Find a run by its id: in its job's document, in the log, or in a request that no node has accepted yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from solocron.client.job_documents import JobDocuments
from solocron.errors import NotFoundError
from solocron.model.change import Kind
from solocron.model.documents.job import Hold, Job, WaitingRun
from solocron.model.documents.request import first_name
from solocron.model.documents.run import Origin, Record, Status, group_of, job_of, key_of, shard_of
from solocron.model.documents.session import Session, progress_of
from solocron.model.transitions.shards import each
from solocron.stores.contract import All, Named, Query
from solocron.stores.paging import find_job, read_documents
from solocron.views import HoldView, RunView

__all__ = ["RunLookup", "RunPayload", "offered_views", "running_views"]

_WORST_FIRST = (Status.FAILED, Status.TIMED_OUT, Status.LOST, Status.CANCELLED)


@dataclass(frozen=True, slots=True)
class _RunLook:
    """What one look at a run has found."""

    job: Job | None
    held: list[RunView]
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class RunPayload:
    """What the function of a run gets."""

    value: Any
    own: bool
    """False if it is that of the job."""


class RunLookup:
    """Finds runs by id; the id of a sharded run stands for all its shards."""

    def __init__(self, documents: JobDocuments) -> None:
        self._store = documents.store

    def get(self, run: str) -> tuple[RunView, bool]:
        """Return the latest state of a run and whether it is final; raise if there is no such run."""
        found = self.find(run)
        if found is None:
            raise NotFoundError(
                f"there is no run {run!r} in namespace {self._store.namespace!r}; `solocron runs` lists them."
            )
        return found

    def find(self, run: str) -> tuple[RunView, bool] | None:
        """Return the latest state of a run and whether it is final; None if there is no such run.

        A request that a node accepts between the first and the second look is found at the third.
        """
        return self._recorded_or_waiting(run) or self._requested(run) or self._recorded_or_waiting(run)

    def attempts(self, run: str) -> list[RunView]:
        """Return every attempt that has ended, runs, or waits in the queue of a carrier, oldest first."""
        return _attempts(self._look(run), run)

    def whole(self, run: str) -> tuple[RunView, list[RunView]]:
        """Return the latest state of a run and every attempt of it; raise if there is no such run."""
        look = self._look(run)
        found = _latest(look, run)
        return (self.get(run)[0] if found is None else found[0]), _attempts(look, run)

    def payload(self, run: str) -> RunPayload | None:
        """Return the payload of a run that waits or runs; None once it has ended, for the log does not keep it."""
        job = find_job(self._store, job_of(run)) if job_of(run) else None
        if job is None:
            return None
        waiting = [one for waiting_run in job.waiting_runs for one in each(waiting_run)]
        open_runs: list[Hold | WaitingRun] = [*job.active, *waiting]
        for one in open_runs:
            if _is_of(one.run, run):
                own = one.payload is not None
                return RunPayload(one.payload if own else job.definition.payload, own=own)
        return None

    def running(self, jobs: Sequence[Job]) -> list[HoldView]:
        """Return what these jobs run, with what claims and sessions say of it."""
        names = tuple(sorted({hold.session for job in jobs for hold in job.active}))
        if not names:
            return []
        sessions = [doc for doc in self._store.read(Named(Kind.SESSION, names)) if isinstance(doc, Session)]
        return running_views(jobs, sessions, self._store.clock())

    def _recorded_or_waiting(self, run: str) -> tuple[RunView, bool] | None:
        return _latest(self._look(run), run)

    def _look(self, run: str) -> _RunLook:
        """Read the document before the log: a run that ends in between is found by its record, which then counts."""
        job = find_job(self._store, job_of(run)) if job_of(run) else None
        held = self._held(job, run)
        return _RunLook(job, held, self._records(run))

    def _held(self, job: Job | None, run: str) -> list[RunView]:
        """Return the attempts of a run, or of its shards, that are held."""
        if job is None or not any(_is_of(hold.run, run) for hold in job.active):
            return []
        return [view for view in self.running([job]) if _is_of(view.run, run)]

    def _records(self, run: str) -> tuple[Record, ...]:
        """Return the records of a run, or of the shards of a slot or request."""
        records = self._store.history(Query(run=run, limit=1_000)).records
        if records or shard_of(run) is not None or not job_of(run):
            return records
        return self._store.history(Query(group=run, limit=10_000)).records

    def _requested(self, run: str) -> tuple[RunView, bool] | None:
        """Find a run that a committed transaction asks for and that no node has accepted yet."""
        first = first_name(run)
        for document in read_documents(self._store, All(Kind.REQUEST, after=first, limit=1)):
            if document.name.startswith(first):
                request, at = document.body["request"], document.body.get("at") or self._store.clock()
                waiting = WaitingRun(run=run, slot=at, origin=Origin.TRIGGER, ready_at=at, request=request)
                key = key_of(job_of(run), waiting.origin, at, request)
                return RunView.waiting(job_of(run), waiting, key), False
        return None


def running_views(jobs: Iterable[Job], sessions: Iterable[Session], now: int) -> list[HoldView]:
    """Return what these jobs run, latest claim first; its progress is in the session that holds it."""
    known = {session.name: session for session in sessions}
    found: list[tuple[int, HoldView]] = []
    for job in jobs:
        for hold in job.active:
            session = known.get(hold.session)
            progress = None if session is None else progress_of(session).get((hold.run, hold.fence))
            found.append((hold.claimed_at, HoldView.of_hold(job, hold, session, now=now, progress=progress)))
    return [view for _, view in sorted(found, key=lambda one: (one[0], one[1].run), reverse=True)]


def offered_views(jobs: Iterable[Job]) -> list[RunView]:
    """Return the runs of these jobs that a carrier has and no worker has picked up, the longest wait first."""
    found: list[tuple[int, RunView]] = []
    for job in jobs:
        for one in job.waiting_runs:
            if one.offered and one.offer is not None:
                key = key_of(job.name, one.origin, one.slot, one.request, one.shard)
                found.append((one.offer.since, RunView.waiting(job.name, one, key)))
    return [view for _, view in sorted(found, key=lambda item: (item[0], item[1].run))]


def _latest(look: _RunLook, run: str) -> tuple[RunView, bool] | None:
    ended = {(record.run, record.attempt) for record in look.records}
    waiting = [] if look.job is None else _waiting(look.job, run)
    for one in (*waiting, *look.held):
        if (one.run, one.attempt) not in ended:
            return one, False
    last = {record.run: RunView.of(record) for record in sorted(look.records, key=lambda record: record.attempt)}
    view = min(last.values(), key=_badness, default=None)
    # Open in the document and ended in the log: only the next look tells whether another attempt follows.
    return None if view is None else (view, not (look.held or waiting))


def _attempts(look: _RunLook, run: str) -> list[RunView]:
    waiting = [] if look.job is None else _waiting(look.job, run)
    offered = [view for view in waiting if view.status == Status.OFFERED]
    views = {(view.attempt, view.run): view for view in (*offered, *look.held, *map(RunView.of, look.records))}
    return [views[key] for key in sorted(views)]


def _is_of(one: str, run: str) -> bool:
    """Return whether this is the run, or a shard of it."""
    return run in (one, group_of(one))


def _waiting(job: Job, run: str) -> list[RunView]:
    found = [one for waiting_run in job.waiting_runs for one in each(waiting_run) if _is_of(one.run, run)]
    return [RunView.waiting(job.name, o, key_of(job.name, o.origin, o.slot, o.request, o.shard)) for o in found]


def _badness(view: RunView) -> int:
    return _WORST_FIRST.index(Status(view.status)) if view.status in _WORST_FIRST else len(_WORST_FIRST)
