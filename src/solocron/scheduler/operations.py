"""Queries and commands of a `Scheduler`: the methods of a client on its store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from typing import Any, Unpack, cast, overload

from solocron.calendars.views import CalendarView
from solocron.client import Client
from solocron.client.backfill import BackfillChoice
from solocron.client.timeline import LaneKind
from solocron.dispatch.carrier import Carriage, message_id
from solocron.errors import NotFoundError
from solocron.jobs.job_spec import JobSpec
from solocron.jobs.options import AddOptions, Span
from solocron.model.documents.run import Status
from solocron.scheduler.auditing import audited, audited_job
from solocron.scheduler.core import Core
from solocron.schedules import Schedule
from solocron.views import (
    AccountingView,
    AuditPage,
    BackfillView,
    JobView,
    LimitView,
    NodeView,
    ResumeView,
    RunView,
    ScopedPauseView,
    SlotView,
    StatusView,
    SyncView,
    TimelineView,
    WhyView,
)

__all__ = ["Operations"]


class Operations:
    """The methods of `Scheduler` that need no node: they work on a scheduler that was never started."""

    _core: Core

    def open(self) -> Client:
        """Open the store now, and return the client behind the methods below.

        Every method opens the store by itself. Call this one to fail early where the store cannot be used, or for what
        only the client has: `adopt`, `restored`, pages with cursors.
        """
        return self._core.open()

    def _read(self) -> Client:
        """Open the store for reading: nothing is created or migrated."""
        return self._core.open(read_only=True)

    def jobs(self) -> list[JobView]:
        """Return every job of the namespace, by name."""
        return self._read().jobs()

    def get_job(self, name: str) -> JobView:
        """Return one job."""
        return self._read().get_job(name)

    def runs(
        self,
        job: str | None = None,
        *,
        status: str | Iterable[str] | None = None,
        origin: str | Iterable[str] | None = None,
        node: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
    ) -> list[RunView]:
        """Return what runs, latest claim first, then the records of the log, newest first."""
        return self._read().runs(job, status=status, origin=origin, node=node, since=since, until=until, limit=limit)

    def get_run(self, id: str) -> RunView:
        """Return the last attempt of a run, or the run as it waits."""
        return self._read().get_run(id)

    def attempts(self, id: str) -> list[RunView]:
        """Return every attempt of a run that has ended, runs or waits in a queue, oldest first."""
        return self._read().attempts(id)

    def slots(self, job: str, start: datetime, end: datetime) -> list[SlotView]:
        """Return every slot of a job from `start` on and before `end`, at most 2,000, with what became of it."""
        return self._read().slots(job, start, end)

    def why(self, job: str, at: datetime | None = None) -> WhyView:
        """Return why the slot of a job at an instant (now), or the last one before it, did or did not run."""
        return self._read().why(job, at)

    def accounting(self, since: datetime, job: str | None = None) -> AccountingView:
        """Return the slots that came due since then, by what became of them, of one job or of all.

        It reads the log of each job.
        """
        return self._read().accounting(since, job)

    def timeline(self, start: datetime, end: datetime, *, lanes: LaneKind = "node", limit: int = 2_000) -> TimelineView:
        """Return what happened from `start` to `end`, at most 7 days: attempts in lanes, takeovers, refused results.

        The newest `limit` attempts are listed and older ones counted. Past the present there are the slots to come.
        """
        return self._read().timeline(start, end, lanes=lanes, limit=limit)

    def nodes(self, *, ended: bool = False, since: datetime | None = None) -> list[NodeView]:
        """Return the nodes of the namespace, by name; with `ended` those whose end is on record follow, latest first.

        With `since`, only those of them that ended then or later.
        """
        return self._read().nodes(ended=ended, since=since)

    def audit(
        self, *, who: str | None = None, subject: str | None = None, limit: int = 50, after: str | None = None
    ) -> AuditPage:
        """Return who asked for what, newest first; `after` is the `next` of the page before."""
        return self._read().audit(who=who, subject=subject, limit=limit, after=after)

    def limits(self) -> list[LimitView]:
        """Return the limits across jobs: how many may run, and which runs have the permits."""
        return self._read().limits()

    def status(self) -> StatusView:
        """Return the nodes, the running attempts, and the counts of the last 24 hours."""
        return self._read().status()

    def upcoming(self, job: str, n: int = 10) -> list[datetime]:
        """Return the next slots of a job."""
        return self._read().upcoming(job, n)

    def trigger(
        self,
        job: str | Callable[..., Any],
        payload: Any = None,
        *,
        at: datetime | None = None,
        key: str | None = None,
        shard: int | str | None = None,
        connection: Any = None,
        by: str | None = None,
        note: str | None = None,
    ) -> str:
        """Schedule a run of a job, by its name or its function, now or at an instant, and return the run's id.

        The same key returns the same run.
        With `connection` the run is requested in the transaction that you have open there: no commit, no run.
        """
        name = self._core.registry.name_of(job)
        # In the caller's transaction there is no act before its commit: the run itself says who asked for it.
        author = by if connection is None else None
        with audited_job(self._core, "trigger", name, by=author, note=note):
            return self.open().trigger(
                name, payload, at=at, key=key, shard=shard, connection=connection, by=by, note=note
            )

    def wait(self, run: str, timeout: Span | None = None) -> RunView:
        """Wait until a run is over, retries included, and return its last attempt."""
        return self.open().wait(run, timeout)

    def pause(
        self, job: str, *, by: str | None = None, note: str | None = None, until: datetime | None = None
    ) -> JobView:
        """Start nothing more of a job by schedule, until it is resumed or until an instant."""
        with audited_job(self._core, "pause", job, by=by, note=note):
            return self.open().pause(job, by=by, note=note, until=until)

    def resume(self, job: str, *, by: str | None = None, note: str | None = None) -> JobView:
        """Resume a paused job; the slots of the pause are recorded as skipped."""
        with audited_job(self._core, "resume", job, by=by, note=note):
            return self.open().resume(job, by=by, note=note)

    def resume_preview(self, job: str) -> ResumeView:
        """Return what `resume` would do now, without doing it."""
        return self._read().resume_preview(job)

    def pause_all(
        self,
        *,
        pool: str | None = None,
        match: str | None = None,
        by: str | None = None,
        note: str | None = None,
        until: datetime | None = None,
        triggers: bool = False,
    ) -> ScopedPauseView:
        """Start nothing more by schedule: of any job, of those of a pool, or of those whose names match a pattern.

        Every node respects it from its next claim on, for jobs that are deployed later too. Slots meanwhile are
        recorded as skipped. With `triggers`, what a person or a program requested waits as well. Pauses of different
        scopes stand side by side; the same scope again changes author, note and end.
        """
        with audited(self._core, "pause", _scope(pool, match), by=by, note=note):
            return self.open().pause_all(pool=pool, match=match, by=by, note=note, until=until, triggers=triggers)

    def resume_all(
        self,
        *,
        pool: str | None = None,
        match: str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> ScopedPauseView | None:
        """Lift the pause of all jobs, of a pool, or of a pattern; return it, or None if none of that scope stands.

        A job that another pause covers, or that has one of its own, stays paused.
        """
        client = self.open()
        # Without a pause of that scope there is nothing to do, and an entry would say that it was done.
        stands = by is not None and any((one.pool, one.match) == (pool, match) for one in client.pauses())
        with audited(self._core, "resume", _scope(pool, match), by=by if stands else None, note=note):
            return client.resume_all(pool=pool, match=match, by=by, note=note)

    def pauses(self) -> list[ScopedPauseView]:
        """Return the pauses of many jobs that stand, the oldest first."""
        return self._read().pauses()

    @overload
    def rerun(
        self, job: str, slot: datetime, *, key: str | None = None, by: str | None = None, note: str | None = None
    ) -> str: ...
    @overload
    def rerun(
        self,
        job: str,
        *,
        failed_since: datetime,
        key: str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> list[str]: ...
    def rerun(
        self,
        job: str,
        slot: datetime | None = None,
        *,
        failed_since: datetime | None = None,
        key: str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> str | list[str]:
        """Run a slot once more, or every slot that failed since then, with the key that it had."""
        rerun = cast("Callable[..., str | list[str]]", self.open().rerun)  # it refuses both, and neither
        with audited_job(self._core, "rerun", job, by=by, note=note):
            return rerun(job, slot, failed_since=failed_since, key=key, by=by, note=note)

    def backfill(
        self,
        job: str,
        start: datetime,
        end: datetime,
        *,
        limit: int | None = None,
        rate: str | None = None,
        dry_run: bool = False,
        only: BackfillChoice = "all",
        key: str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> BackfillView:
        """Run every slot of a range of the past, live slots first; `dry_run` only counts.

        `only="missed"` leaves out the slots that ran, `only="not_well"` those that succeeded. Calling it again with
        the same `key` returns the same backfill.
        """
        with audited_job(self._core, "backfill", job, by=None if dry_run else by, note=note):
            return self.open().backfill(
                job, start, end, limit=limit, rate=rate, dry_run=dry_run, only=only, key=key, by=by, note=note
            )

    def backfills(self, job: str | None = None) -> list[BackfillView]:
        """Return the backfills in progress, and how far they are."""
        return self._read().backfills(job)

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
        return self.open().calendar(name, weekend=weekend, holidays=holidays, country=country, subdivision=subdivision)

    def calendars(self) -> list[CalendarView]:
        """Return every calendar of the namespace, with the jobs that name it."""
        return self._read().calendars()

    def upcoming_changes(self, job: str, n: int = 10) -> list[str]:
        """Return a sentence for each of the next slots that the job's calendar moves or leaves out."""
        return self._read().upcoming_changes(job, n)

    def cancel(self, run: str, *, by: str | None = None, note: str | None = None) -> str:
        """Stop a run.

        Return "asked" if a node has to stop it, "cancelled" if it was waiting, or its status if it is over.
        """
        with audited_job(self._core, "cancel", run, by=by, note=note):
            client = self.open()
            offered = _offered(self._core, client, run)
            answer = client.cancel(run, by=by, note=note)
            if offered is not None and answer == "cancelled":
                carriage, message = offered
                carriage.withdraw(message)
            return answer

    def add(
        self,
        name: str,
        handler: str | Callable[..., Any],
        schedule: str | Schedule,
        *,
        by: str | None = None,
        note: str | None = None,
        **options: Unpack[AddOptions],
    ) -> JobView:
        """Add or change a job as data; its handler is the name of a declared job or registered function, or a function.

        A function that is given is registered here; other nodes need it registered under the same name.
        """
        return self.open().add(name, self._core.registry.handler_of(handler), schedule, by=by, note=note, **options)

    def add_all(self, jobs: Iterable[JobSpec], *, by: str | None = None, note: str | None = None) -> list[str]:
        """Add or change jobs as data, many in one write; return the names of those that were not so already.

        Every job is checked before the first is written. Each is changed by itself, and keeps its author and note.
        """
        return self.open().add_all(jobs, by=by, note=note)

    def remove_all(self, names: Iterable[str], *, by: str | None = None, note: str | None = None) -> list[str]:
        """Remove jobs that no live code declares, many in one write; return the names of those that were there."""
        return self.open().remove_all(names, by=by, note=note)

    def sync(
        self,
        jobs: Iterable[JobSpec],
        *,
        within: str,
        dry_run: bool = False,
        by: str | None = None,
        note: str | None = None,
    ) -> SyncView:
        """Make the jobs that were added below a prefix equal to a list; `dry_run` only compares.

        Jobs that code declares are not touched. Every job is checked before the first is written, and each is changed
        by itself. Two processes may sync at once: a job that the other has changed meanwhile is not removed.
        """
        return self.open().sync(jobs, within=within, dry_run=dry_run, by=by, note=note)

    def remove(self, name: str, *, by: str | None = None, note: str | None = None) -> None:
        """Remove a job: its waiting runs are cancelled, its running ones are asked to stop."""
        with audited_job(self._core, "remove", name, by=by, note=note):
            self.open().remove(name, by=by, note=note)


def _scope(pool: str | None, match: str | None) -> str:
    """Return the words of a scope, as the audit has them."""
    return f"--pool {pool}" if pool is not None else f"--match {match}" if match is not None else "--all"


def _offered(core: Core, client: Client, run: str) -> tuple[Carriage, str] | None:
    """Return the carrier that has the message of a run, if it is named here, and the id of the message."""
    if not core.carriers:
        return None
    try:
        view = client.get_run(run)
        carriage = core.carriers.get(client.get_job(view.job).run_in) if view.status == Status.OFFERED else None
    except NotFoundError:
        return None
    return None if carriage is None else (carriage, message_id(core.store.namespace, view.job, view.run, view.attempt))
