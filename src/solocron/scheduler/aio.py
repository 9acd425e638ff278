"""`AsyncScheduler`: the methods of a scheduler, awaited on threads of its own.

`asyncio.to_thread` would be shorter. It shares one small pool with the whole application: a call that waits there for
runs to end keeps the application's calls out, and those keep ours out.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, cast, overload

from solocron.calendars.views import CalendarView
from solocron.client.backfill import BackfillChoice
from solocron.client.timeline import LaneKind
from solocron.dispatch.carrier import Message
from solocron.effects.locks.listing import LockView
from solocron.effects.requests import check_connection, leave_async
from solocron.jobs.job_spec import JobSpec
from solocron.jobs.options import AddOptions, Span
from solocron.model.documents.request import run_named
from solocron.scheduler.inline import Here
from solocron.schedules import Schedule
from solocron.views import (
    AccountingView,
    AlarmsView,
    AuditPage,
    BackfillView,
    JobView,
    LimitView,
    NodeView,
    ResumeView,
    RunView,
    ScopedPauseView,
    SilenceView,
    SlotView,
    StatusView,
    SyncView,
    TimelineView,
    WhyView,
)

if TYPE_CHECKING:
    from solocron.scheduler.scheduler import Scheduler

__all__ = ["AsyncScheduler"]

P = ParamSpec("P")
T = TypeVar("T")

_CALLS = 8
"""Calls of the store at once; the others wait for their turn."""


class AsyncScheduler:
    """`await scheduler.aio.trigger(...)`: the same names, arguments and results as those of `Scheduler`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._made = _Pools()

    # --- running: each call gets a thread of its own, because it lasts as long as jobs do -----------------------------

    async def start(self) -> None:
        """Run a node in the background of this process; coroutine jobs run on the caller's event loop if it has one."""
        self._scheduler._core.loop = asyncio.get_running_loop()
        await _alone(self._scheduler.start)

    async def stop(self, grace: Span | None = None) -> bool:
        """Drain: stop claiming, let runs end within the grace, hand back the rest; return True if nothing was left."""
        return await _alone(partial(self._scheduler.stop, grace))

    async def tick(self, *, inline: bool = False) -> list[RunView]:
        """Do one pass, for an external trigger: sweep, claim what is due, wait for it; return the runs.

        Safe beside running nodes and other ticks. Never waits for a backoff. `inline` runs the bodies where the caller
        is, one after the other: on its thread, with `aio` on its event loop.
        """
        here = Here.on_loop(asyncio.get_running_loop()) if inline else None
        return await _alone(partial(self._scheduler._tick, here))

    async def run_now(
        self, job: str | Callable[..., Any], payload: Any = None, *, shard: int | str | None = None
    ) -> Any:
        """Run a job here and now: on the caller's thread, with `aio` on its event loop. Return what it returned.

        The body gets a real run: requested and claimed in one step under a session of its own, with the job's next
        fence, its wrappers and its limits, and recorded like a trigger. `run.once`, `run.step`, `run.guard` and keys
        therefore act as in production, and a run that is active elsewhere refuses it. What the body raises is raised as
        it is. There is no retry: the caller decides. It works with `enabled=False` too.
        """
        name = self._scheduler.registry.name_of(job)
        here = Here.on_loop(asyncio.get_running_loop())
        running = asyncio.ensure_future(_alone(partial(self._scheduler._run_here, name, payload, shard, here)))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            here.stop()  # else the body would go on without its caller
            while not running.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({running})
            if not running.cancelled():
                running.exception()  # looked at, so that the loop does not report it
            raise

    async def carry_out(self, message: Message | Mapping[str, Any] | str | bytes) -> RunView | None:
        """Carry out the run of a message, on the worker's side of any queue; return when its outcome is in the store.

        The body runs under a session and a fence of this process, on the calling thread; with `aio` a coroutine runs on
        the event loop, and a function on a thread beside it. None if the message starts nothing: it is a copy, too
        late, or not for now. `StoreUnavailable` if nothing was picked up: let the queue deliver it again.
        """
        here = Here.of_worker(asyncio.get_running_loop())
        return await _alone(partial(self._scheduler._carry_out, Message.read(message), here))

    # --- queries, commands and locks -----------------------------------------------------------------------------

    async def jobs(self) -> list[JobView]:
        """Return every job of the namespace, by name."""
        return await self._call(self._scheduler.jobs)

    async def get_job(self, name: str) -> JobView:
        """Return one job."""
        return await self._call(self._scheduler.get_job, name)

    async def runs(
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
        return await self._call(
            self._scheduler.runs, job, status=status, origin=origin, node=node, since=since, until=until, limit=limit
        )

    async def get_run(self, id: str) -> RunView:
        """Return the last attempt of a run, or the run as it waits."""
        return await self._call(self._scheduler.get_run, id)

    async def attempts(self, id: str) -> list[RunView]:
        """Return every attempt of a run that has ended, runs or waits in a queue, oldest first."""
        return await self._call(self._scheduler.attempts, id)

    async def slots(self, job: str, start: datetime, end: datetime) -> list[SlotView]:
        """Return every slot of a job from `start` on and before `end`, at most 2,000, with what became of it."""
        return await self._call(self._scheduler.slots, job, start, end)

    async def why(self, job: str, at: datetime | None = None) -> WhyView:
        """Return why the slot of a job at an instant (now), or the last one before it, did or did not run."""
        return await self._call(self._scheduler.why, job, at)

    async def accounting(self, since: datetime, job: str | None = None) -> AccountingView:
        """Return the slots that came due since then, by what became of them, of one job or of all.

        It reads the log of each job.
        """
        return await self._call(self._scheduler.accounting, since, job)

    async def timeline(
        self, start: datetime, end: datetime, *, lanes: LaneKind = "node", limit: int = 2_000
    ) -> TimelineView:
        """Return what happened from `start` to `end`, at most 7 days: attempts in lanes, takeovers, refused results.

        The newest `limit` attempts are listed and older ones counted. Past the present there are the slots to come.
        """
        return await self._call(self._scheduler.timeline, start, end, lanes=lanes, limit=limit)

    async def nodes(self, *, ended: bool = False, since: datetime | None = None) -> list[NodeView]:
        """Return the nodes of the namespace, by name; with `ended` those whose end is on record follow, latest first.

        With `since`, only those of them that ended then or later.
        """
        return await self._call(self._scheduler.nodes, ended=ended, since=since)

    async def audit(
        self, *, who: str | None = None, subject: str | None = None, limit: int = 50, after: str | None = None
    ) -> AuditPage:
        """Return who asked for what, newest first; `after` is the `next` of the page before."""
        return await self._call(self._scheduler.audit, who=who, subject=subject, limit=limit, after=after)

    async def open_alarms(self) -> AlarmsView:
        """Return the open alarms, what was told of them, and the silences."""
        return await self._call(self._scheduler.open_alarms)

    async def silence(
        self, what: str, *, until: datetime, note: str | None = None, by: str | None = None
    ) -> SilenceView:
        """Tell nothing of some alarms until an instant: a kind, a pattern of jobs, or `kind:pattern`."""
        return await self._call(self._scheduler.silence, what, until=until, note=note, by=by)

    async def lift_silence(self, what: str, *, note: str | None = None, by: str | None = None) -> None:
        """End a silence now; what is still wrong is told."""
        await self._call(self._scheduler.lift_silence, what, note=note, by=by)

    async def limits(self) -> list[LimitView]:
        """Return the limits across jobs: how many may run, and which runs have the permits."""
        return await self._call(self._scheduler.limits)

    async def status(self) -> StatusView:
        """Return the nodes, the running attempts, and the counts of the last 24 hours."""
        return await self._call(self._scheduler.status)

    async def upcoming(self, job: str, n: int = 10) -> list[datetime]:
        """Return the next slots of a job."""
        return await self._call(self._scheduler.upcoming, job, n)

    async def trigger(
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
        if connection is None:
            return await self._call(
                self._scheduler.trigger, job, payload, at=at, key=key, shard=shard, by=by, note=note
            )
        client = await self._call(self._scheduler.open)
        check_connection(client.store, connection)
        name = self._scheduler.registry.name_of(job)
        request = await self._call(client.request, name, payload, at=at, key=key, shard=shard, by=by, note=note)
        await leave_async(client.store, connection, request)  # on the caller's loop: the connection may be awaited
        return run_named(request)

    async def wait(self, run: str, timeout: Span | None = None) -> RunView:
        """Wait until a run is over, retries included, and return its last attempt."""
        waiting = await _on(self._pools.looks, lambda: self._scheduler.open().waiting(run, timeout))
        while (view := await _on(self._pools.looks, waiting.look)) is None:
            await asyncio.sleep(waiting.pause)  # holds no thread between two looks
        return view

    async def pause(
        self, job: str, *, by: str | None = None, note: str | None = None, until: datetime | None = None
    ) -> JobView:
        """Start nothing more of a job by schedule, until it is resumed or until an instant."""
        return await self._call(self._scheduler.pause, job, by=by, note=note, until=until)

    async def resume(self, job: str, *, by: str | None = None, note: str | None = None) -> JobView:
        """Resume a paused job; the slots of the pause are recorded as skipped."""
        return await self._call(self._scheduler.resume, job, by=by, note=note)

    async def resume_preview(self, job: str) -> ResumeView:
        """Return what `resume` would do now, without doing it."""
        return await self._call(self._scheduler.resume_preview, job)

    async def pause_all(
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
        return await self._call(
            self._scheduler.pause_all, pool=pool, match=match, by=by, note=note, until=until, triggers=triggers
        )

    async def resume_all(
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
        return await self._call(self._scheduler.resume_all, pool=pool, match=match, by=by, note=note)

    async def pauses(self) -> list[ScopedPauseView]:
        """Return the pauses of many jobs that stand, the oldest first."""
        return await self._call(self._scheduler.pauses)

    @overload
    async def rerun(
        self, job: str, slot: datetime, *, key: str | None = None, by: str | None = None, note: str | None = None
    ) -> str: ...
    @overload
    async def rerun(
        self,
        job: str,
        *,
        failed_since: datetime,
        key: str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> list[str]: ...
    async def rerun(
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
        rerun = cast("Callable[..., str | list[str]]", self._scheduler.rerun)  # it refuses both, and neither
        return await self._call(rerun, job, slot, failed_since=failed_since, key=key, by=by, note=note)

    async def backfill(
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
        return await self._call(
            self._scheduler.backfill,
            job,
            start,
            end,
            limit=limit,
            rate=rate,
            dry_run=dry_run,
            only=only,
            key=key,
            by=by,
            note=note,
        )

    async def backfills(self, job: str | None = None) -> list[BackfillView]:
        """Return the backfills in progress, and how far they are."""
        return await self._call(self._scheduler.backfills, job)

    async def calendar(
        self,
        name: str,
        *,
        weekend: Iterable[str] = ("sat", "sun"),
        holidays: Iterable[date] | Mapping[date, str] = (),
        country: str | None = None,
        subdivision: str | None = None,
    ) -> CalendarView:
        """Create or change a business calendar in the store, for all nodes."""
        return await self._call(
            self._scheduler.calendar, name, weekend=weekend, holidays=holidays, country=country, subdivision=subdivision
        )

    async def calendars(self) -> list[CalendarView]:
        """Return every calendar of the namespace, with the jobs that name it."""
        return await self._call(self._scheduler.calendars)

    async def upcoming_changes(self, job: str, n: int = 10) -> list[str]:
        """Return a sentence for each of the next slots that the job's calendar moves or leaves out."""
        return await self._call(self._scheduler.upcoming_changes, job, n)

    async def cancel(self, run: str, *, by: str | None = None, note: str | None = None) -> str:
        """Stop a run.

        Return "asked" if a node has to stop it, "cancelled" if it was waiting, or its status if it is over.
        """
        return await self._call(self._scheduler.cancel, run, by=by, note=note)

    async def add(
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
        return await self._call(self._scheduler.add, name, handler, schedule, by=by, note=note, **options)

    async def add_all(self, jobs: Iterable[JobSpec], *, by: str | None = None, note: str | None = None) -> list[str]:
        """Add or change jobs as data, many in one write; return the names of those that were not so already.

        Every job is checked before the first is written. Each is changed by itself, and keeps its author and note.
        """
        return await self._call(self._scheduler.add_all, jobs, by=by, note=note)

    async def remove_all(self, names: Iterable[str], *, by: str | None = None, note: str | None = None) -> list[str]:
        """Remove jobs that no live code declares, many in one write; return the names of those that were there."""
        return await self._call(self._scheduler.remove_all, names, by=by, note=note)

    async def sync(
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
        return await self._call(self._scheduler.sync, jobs, within=within, dry_run=dry_run, by=by, note=note)

    async def remove(self, name: str, *, by: str | None = None, note: str | None = None) -> None:
        """Remove a job: its waiting runs are cancelled, its running ones are asked to stop."""
        await self._call(self._scheduler.remove, name, by=by, note=note)

    async def locks(self) -> list[LockView]:
        """Return every lock of the namespace: owner, since when, until when, fence."""
        return await self._call(self._scheduler.locks)

    async def force_release(self, name: str, *, reason: str, by: str | None = None) -> LockView:
        """Take a lock from its holder; recorded with the reason, and the fence rises."""
        return await self._call(self._scheduler.force_release, name, reason=reason, by=by)

    # --- threads -------------------------------------------------------------------------------------------------

    async def _call(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await _on(self._pools.calls, partial(method, *args, **kwargs))

    def _close(self) -> None:
        """Let the threads end after the calls they were given; a later call gets new ones.

        A pool without references does that by itself. `shutdown()` would also refuse a call that another thread is
        just submitting, and in the child of a fork its lock may be held by a thread that does not exist there.
        """
        self._made = _Pools()

    @property
    def _pools(self) -> _Pools:
        if self._made.process != os.getpid():  # after a fork: a pool believes in threads that only its parent has
            self._made = _Pools()
        return self._made


class _Pools:
    """Threads for calls of the store, and one thread for the looks of all that wait; none before they are needed."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.calls = ThreadPoolExecutor(_CALLS, "solocron-aio")
        self.looks = ThreadPoolExecutor(1, "solocron-aio-wait")


async def _on(pool: Executor, call: Callable[[], T]) -> T:
    """Make a call on a thread of the pool, in the caller's context."""
    context = contextvars.copy_context()
    made = asyncio.get_running_loop().run_in_executor(pool, context.run, call)
    del pool  # else the traceback of an error, which is in a cycle with its future, would keep the threads
    return await made


async def _alone(call: Callable[[], T]) -> T:
    """Make a call on a thread that ends with it."""
    pool = ThreadPoolExecutor(1, "solocron-aio-long")
    try:
        return await _on(pool, call)
    finally:
        pool.shutdown(wait=False)
