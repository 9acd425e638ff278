"""The operations of `Scheduler`: the methods of a client on its store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any, Unpack, overload

from solocron.calendars import CalendarView
from solocron.client.facade import Client
from solocron.jobs.options import AddOptions
from solocron.schedules import Schedule
from solocron.stores.contract import Store
from solocron.views import BackfillView, JobView, LimitView, NodeView, ResumeView, RunView, StatusView

__all__ = ["ClientFront"]

Span = timedelta | int | float | str


class ClientFront:
    """Operations that need no node: they work on a scheduler that was never started."""

    _store: Store
    _client: Client

    @property
    def client(self) -> Client:
        """The client behind the methods below, with its store open."""
        self._store.open()
        return self._client

    @property
    def _reader(self) -> Client:
        """The same client with its store open for reading: nothing is created or migrated."""
        self._store.open(read_only=True)
        return self._client

    def jobs(self) -> list[JobView]:
        """Return every job of the namespace, by name."""
        return self._reader.jobs()

    def get_job(self, name: str) -> JobView:
        """Return one job."""
        return self._reader.get_job(name)

    def runs(
        self, job: str | None = None, *, status: str | Iterable[str] | None = None, limit: int = 50
    ) -> list[RunView]:
        """Return records of runs, newest first."""
        return self._reader.runs(job, status=status, limit=limit)

    def get_run(self, id: str) -> RunView:
        """Return the last attempt of a run, or the run as it waits."""
        return self._reader.get_run(id)

    def nodes(self) -> list[NodeView]:
        """Return the nodes of the namespace, by name."""
        return self._reader.nodes()

    def limits(self) -> list[LimitView]:
        """Return the limits across jobs: how many may run, and which runs have the permits."""
        return self._reader.limits()

    def status(self) -> StatusView:
        """Return the nodes, the running attempts, and the counts of the last 24 hours."""
        return self._reader.status()

    def upcoming(self, job: str, n: int = 10) -> list[datetime]:
        """Return the next slots of a job."""
        return self._reader.upcoming(job, n)

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
        """Schedule a run now, or at an instant, and return its id. The same key returns the same run.

        With `connection` the run is requested in the transaction that you have open there: no commit, no run.
        """
        return self.client.trigger(job, payload, at=at, key=key, shard=shard, connection=connection)

    def wait(self, run: str, timeout: Span | None = None) -> RunView:
        """Wait until a run is over, retries included, and return its last attempt."""
        return self.client.wait(run, timeout)

    def pause(
        self, job: str, *, by: str | None = None, note: str | None = None, until: datetime | None = None
    ) -> JobView:
        """Start nothing more of a job by schedule, until it is resumed or until an instant."""
        return self.client.pause(job, by=by, note=note, until=until)

    def resume(self, job: str) -> JobView:
        """Resume a paused job; the slots of the pause are recorded as skipped."""
        return self.client.resume(job)

    def resume_preview(self, job: str) -> ResumeView:
        """Return what `resume` would do now, without doing it."""
        return self._reader.resume_preview(job)

    @overload
    def rerun(self, job: str, slot: datetime, *, key: str | None = None) -> str: ...
    @overload
    def rerun(self, job: str, *, failed_since: datetime, key: str | None = None) -> list[str]: ...
    def rerun(
        self, job: str, slot: datetime | None = None, *, failed_since: datetime | None = None, key: str | None = None
    ) -> str | list[str]:
        """Run a slot once more, or every slot that failed since then, with the key that it had."""
        if failed_since is not None and slot is None:
            return self.client.rerun(job, failed_since=failed_since, key=key)
        return self.client.rerun(job, slot, failed_since=failed_since, key=key)  # type: ignore[call-overload, no-any-return]

    def backfill(
        self,
        job: str,
        start: datetime,
        end: datetime,
        *,
        limit: int | None = None,
        rate: str | None = None,
        dry_run: bool = False,
    ) -> BackfillView:
        """Run every slot of a range of the past, live slots first; `dry_run` only counts."""
        return self.client.backfill(job, start, end, limit=limit, rate=rate, dry_run=dry_run)

    def backfills(self, job: str | None = None) -> list[BackfillView]:
        """Return the backfills in progress, and how far they are."""
        return self._reader.backfills(job)

    def calendar(
        self,
        name: str,
        *,
        weekend: Iterable[str] = ("sat", "sun"),
        holidays: Iterable[date] | Mapping[date, str] = (),
        country: str | None = None,
        subdivision: str | None = None,
    ) -> CalendarView:
        """Create or change a business calendar in the store, for all nodes."""
        return self.client.calendar(name, weekend=weekend, holidays=holidays, country=country, subdivision=subdivision)

    def calendars(self) -> list[CalendarView]:
        """Return every calendar of the namespace, with the jobs that name it."""
        return self._reader.calendars()

    def upcoming_changes(self, job: str, n: int = 10) -> list[str]:
        """Return a sentence for each of the next slots that the job's calendar moves or leaves out."""
        return self._reader.upcoming_changes(job, n)

    def cancel(self, run: str) -> str:
        """Stop a run.

        Return "asked" if a node has to stop it, "cancelled" if it was waiting, or its status if it is over.
        """
        return self.client.cancel(run)

    def add(self, name: str, handler: str, schedule: str | Schedule, **options: Unpack[AddOptions]) -> JobView:
        """Add or change a job as data."""
        return self.client.add(name, handler, schedule, **options)

    def remove(self, name: str) -> None:
        """Remove a job: its waiting runs are cancelled, its running ones are asked to stop."""
        self.client.remove(name)
