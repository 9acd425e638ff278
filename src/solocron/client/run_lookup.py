"""Find a run by its id: in its job's document, in the log, or in a request that no node has accepted yet."""

from __future__ import annotations

from collections.abc import Iterable

from solocron.client.job_documents import JobDocuments
from solocron.errors import NotFoundError
from solocron.model.change import Kind
from solocron.model.documents.job import Job, WaitingRun
from solocron.model.documents.request import first_name
from solocron.model.documents.run import Origin, Record, Status, group_of, job_of, key_of, shard_of
from solocron.model.documents.session import Session, is_live
from solocron.model.transitions.shards import each
from solocron.stores.contract import All, Query
from solocron.stores.paging import find_job, read_documents, read_jobs, read_sessions
from solocron.views import RunView

__all__ = ["RunLookup", "with_holds"]

_WORST_FIRST = (Status.RUNNING, Status.FAILED, Status.TIMED_OUT, Status.LOST, Status.CANCELLED)


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
        """Return every attempt on record, oldest first."""
        records = self._store.history(Query(run=run, limit=1_000)) or self._shards(run)
        return sorted(map(RunView.of, records), key=lambda view: (view.attempt, view.run))

    def with_claims(self, views: list[RunView]) -> list[RunView]:
        """Complete the views of running attempts with what their claims say: deadline, stop request, progress."""
        names = tuple({view.job for view in views if view.status == Status.RUNNING})
        if not names:
            return views
        jobs = read_jobs(self._store, names)
        return with_holds(views, jobs, read_sessions(self._store), self._store.clock())

    def _recorded_or_waiting(self, run: str) -> tuple[RunView, bool] | None:
        # The document is read before the log: a run that ends in between is found by its record.
        job = find_job(self._store, job_of(run)) if job_of(run) else None
        last = self._latest_record(run)
        if job is not None:
            waiting = _waiting(job, run)
            if waiting is not None:
                return waiting, False
            if any(run in (hold.run, group_of(hold.run)) for hold in job.active):
                return (last, False) if last is not None else None
        return None if last is None else (last, last.status != Status.RUNNING)

    def _latest_record(self, run: str) -> RunView | None:
        """Return the last attempt; of a sharded run one shard: one that runs, else the worst end, else any."""
        records = self._store.history(Query(run=run, limit=1_000))
        if records:
            return max(map(RunView.of, records), key=lambda view: view.attempt)
        shards = sorted(self._shards(run), key=lambda record: record.attempt)
        views = {record.run: RunView.of(record) for record in shards}.values()
        return min(views, key=_badness, default=None)

    def _shards(self, run: str) -> tuple[Record, ...]:
        """Return the records of the shards of one slot or request."""
        if shard_of(run) is not None or not job_of(run):
            return ()
        records = self._store.history(Query(job=job_of(run), limit=10_000))
        return tuple(record for record in records if group_of(record.run) == run)

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


def with_holds(views: Iterable[RunView], jobs: Iterable[Job], sessions: Iterable[Session], now: int) -> list[RunView]:
    """Complete the views of running attempts from the holds of these jobs."""
    holds = {(hold.run, hold.fence): hold for job in jobs for hold in job.active}
    leases = {session.name: session.lease for session in sessions if is_live(session, now=now)}
    found = []
    for view in views:
        hold = holds.get((view.run, view.fence)) if view.status == Status.RUNNING else None
        found.append(view if hold is None else view.held(hold, lease=leases.get(hold.session), now=now))
    return found


def _waiting(job: Job, run: str) -> RunView | None:
    for waiting_run in job.waiting_runs:
        for one in each(waiting_run):
            if run in (one.run, group_of(one.run)):
                return RunView.waiting(job.name, one, key_of(job.name, one.origin, one.slot, one.request, one.shard))
    return None


def _badness(view: RunView) -> int:
    return _WORST_FIRST.index(Status(view.status)) if view.status in _WORST_FIRST else len(_WORST_FIRST)
