"""Every read of the service, in one place: what the client is asked for, and how much of it at most."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

from solocron.calendars.views import CalendarView
from solocron.client import Client
from solocron.client.hour_counts import HOUR
from solocron.client.job_listing import JobPage, WantedJobs
from solocron.client.job_order import OrderBy
from solocron.client.read_job import ReadJob
from solocron.client.run_listing import RunCursor, RunPage, WantedRuns
from solocron.client.run_lookup import RunPayload, running_views
from solocron.client.timeline import LaneKind
from solocron.clock import from_us
from solocron.effects.locks.listing import LockView, list_locks
from solocron.effects.steps import StepView, steps_of
from solocron.model.documents.run import Status, job_of
from solocron.service.moments import apart
from solocron.service.shown import scrubbed
from solocron.stores.contract import Blocked, Mark, Query, RecordKey, Store
from solocron.stores.log import key_of
from solocron.stores.paging import find_session, read_jobs
from solocron.views import (
    AccountingView,
    AlarmsView,
    AlarmView,
    AuditPage,
    AuditView,
    BackfillView,
    DenseView,
    JobView,
    LimitView,
    NodeView,
    PauseView,
    ResumeView,
    RunView,
    SlotView,
    StatusView,
    TimelineView,
    ToComeView,
    WhyView,
)

__all__ = ["MOST_NOT_WELL", "NODES", "Deeds", "LostPage", "Reads", "StatusAnswer"]

_ROWS = 200
_NAMES = 100
_ACTS = 8
_ACTS_LOOKED_AT = 2_000
_DOCUMENTS = 1_000
"""Jobs that one request looks at for a filter that no index answers."""
_TRIP_KEPT = 10.0
MOST_NOT_WELL = 1_000
"""Jobs that are not well are counted so far. In a fleet that is behind, every job may be late."""
NODES = "solocron"
"""The author of a pause that no caller asked for."""
_LOST = frozenset([Status.LOST])
_SCAN = 5_000
"""Records that one request looks at for a filter that no index answers: some 40 ms. The next page goes on there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer(StatusView):
    """The namespace at a glance, with lists of bounded length."""

    more: Mapping[str, int]
    """How many further entries each list that was cut has."""
    check: Mapping[str, float]
    """`round_trip_ms`: what one question to the store takes."""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The store of a namespace, as the frame of every page names it."""

    store: str
    tier: str
    namespace: str


@dataclass(frozen=True, slots=True)
class LostPage:
    """Attempts that were lost, each with its place in the log."""

    runs: tuple[tuple[RecordKey, RunView], ...]
    next: RecordKey | None
    """Where the log goes on; None if there is nothing more."""


@dataclass(frozen=True, slots=True)
class Deeds:
    """Acts of the nodes themselves, as far as they are asked for."""

    pauses: Mapping[str, PauseView]
    """The pauses that stand and that no caller asked for, by job."""
    attempts: tuple[RunView, ...]
    """Attempts that have ended or run, without what their sessions know."""


class Reads:
    """Asks the client. Nothing here writes, and a store that is not there stays so: EmptyStore is raised."""

    def __init__(self, client: Callable[[], Client]) -> None:
        self._ask = client
        self._trip: tuple[float, float] | None = None

    @property
    def _client(self) -> Client:
        return self._ask()

    @property
    def _store(self) -> Store:
        return self._ask().store

    def now(self) -> datetime:
        """Return the store's time."""
        return from_us(self._store.clock())

    def status(self) -> StatusAnswer:
        """Return the namespace at a glance."""
        found, more = dict[str, Any](), dict[str, int]()
        view = self._client.status()
        for field in fields(StatusView):
            value = getattr(view, field.name)
            most = _ROWS if field.name in ("nodes", "running", "alarms") else _NAMES
            if isinstance(value, tuple) and len(value) > most:
                more[field.name] = len(value) - most
                value = value[:most]
            found[field.name] = value
        return StatusAnswer(**found, more=more, check={"round_trip_ms": self._round_trip()})

    def whereabouts(self) -> Whereabouts:
        """Return what a page can say of its store before anything is counted."""
        store = self._store
        return Whereabouts(store=store.url, tier=str(store.capabilities.tier), namespace=store.namespace)

    def _round_trip(self) -> float:
        """Return the milliseconds of one question to the store, asked every ten seconds however many want to know."""
        begun = time.monotonic()
        if self._trip is None or begun - self._trip[0] >= _TRIP_KEPT:
            with apart():
                self._store.clock()
            self._trip = (begun, round((time.monotonic() - begun) * 1000, 3))
        return self._trip[1]

    def jobs(self, wanted: WantedJobs, *, limit: int, after: str = "", order: OrderBy = "name") -> JobPage:
        """Return a page of jobs; one for which many documents are looked at may be short, and the next goes on."""
        return self._client.job_page(wanted, limit=limit, after=after, order=order, scan=_DOCUMENTS)

    def count_not_well(self, late_after: int) -> int:
        """Return how many jobs are stuck, failing, late or orphaned; one more than `MOST_NOT_WELL` means more."""
        return self._client.count_not_well(late_after, most=MOST_NOT_WELL + 1)

    def first_created(self) -> datetime | None:
        """Return when the oldest job was made; None if there is none."""
        return self._client.first_created()

    def set_aside(self) -> list[Blocked]:
        """Return the documents that are set aside because they fail on their own."""
        return [replace(one, reason=scrubbed(one.reason)) for one in self._store.blocked()[:_NAMES]]

    def to_come(self, end: datetime) -> list[ToComeView]:
        """Return the slots from now to an instant, or the first ones after it."""
        return self._client.to_come(end)

    def job(self, name: str) -> JobView:
        """Return one job."""
        return self._client.get_job(name)

    def read_job(self, name: str) -> ReadJob:
        """Read one job, to ask several things about it."""
        return self._client.read_job(name)

    def slots(self, job: str, start: datetime, end: datetime) -> list[SlotView]:
        """Return every slot of a span with what became of it."""
        return self._client.slots(job, start, end)

    def why(self, job: str, at: datetime | None) -> WhyView:
        """Return why the slot at an instant, or the last one before it, did or did not run."""
        return self._client.why(job, at)

    def accounting(self, job: str, hours: int) -> AccountingView:
        """Return the slots of a job in the last hours by what became of them.

        Of one job only: the sum over all reads the log of each, which a request may not.
        """
        return self._client.accounting(self.now() - timedelta(hours=hours), job)

    def counts_by_hour(self, now: int, hours: int) -> Mapping[int, Mapping[str, int]]:
        """Return the records of the last hours by status, for each hour; closed ones are counted once."""
        return self._client.hour_counts.by_hour(now - hours * HOUR, now)

    def timeline(self, start: datetime, end: datetime, *, lanes: LaneKind, limit: int) -> TimelineView:
        """Return what happened in a span, in lanes."""
        return self._client.timeline(start, end, lanes=lanes, limit=limit)

    def dense(self, start: datetime, end: datetime) -> tuple[DenseView, ...]:
        """Return how many attempts ended in each part of a span that has too many of them to be listed."""
        return self._client.dense(start, end)

    def resume_preview(self, job: str) -> ResumeView:
        """Return what a resume would do."""
        return self._client.resume_preview(job)

    def backfill_preview(self, job: str, given: Mapping[str, Any]) -> BackfillView:
        """Return what a backfill would do."""
        return self._client.backfill(
            job, given["start"], given["end"], limit=given["limit"], rate=given["rate"], only=given["only"],
            dry_run=True,
        )  # fmt: skip

    def backfills(self, job: str | None = None) -> list[BackfillView]:
        """Return the backfills that still have slots to start."""
        return self._client.backfills(job)

    def forget_jobs(self) -> None:
        """Let the next list of limits, calendars or backfills read every job: a request has just changed one."""
        self._client.forget_jobs()

    def runs(self, wanted: WantedRuns, *, limit: int, before: RunCursor | None) -> RunPage:
        """Return a page of runs, newest first."""
        return self._client.run_page(wanted, limit=limit, before=before, scan=_SCAN)

    def newest_runs(self, jobs: Sequence[str], limit: int) -> dict[str, tuple[RunView, ...]]:
        """Return the newest runs of each of these jobs."""
        return self._client.newest_runs(jobs, limit)

    def run(self, id: str) -> tuple[RunView, list[RunView], list[StepView]]:
        """Return the last attempt of a run, all its attempts, and its steps."""
        last, attempts = self._client.whole_run(id)
        return last, attempts, steps_of(self._store, id)

    def run_payload(self, id: str) -> RunPayload | None:
        """Return the payload of a run that waits or runs; None once it has ended."""
        return self._client.run_payload(id)

    def nodes(self, *, ended: bool, since: datetime | None = None) -> list[NodeView]:
        """Return the nodes; with `ended` also those whose end is on record, or was at `since` or later."""
        return self._client.nodes(ended=ended, since=since if ended else None)

    def node(self, session: str) -> NodeView | None:
        """Return the node of one session; None if it is not on record."""
        store = self._store
        found = find_session(store, session)
        return None if found is None else NodeView.of(found, now=store.clock())

    def alarms(self) -> AlarmsView:
        """Return the open alarms, messages and silences."""
        return self._client.open_alarms()

    def closed_alarms(self) -> list[AlarmView]:
        """Return the alarms whose causes are gone, the last one first."""
        return self._client.closed_alarms()

    def limits(self) -> list[LimitView]:
        """Return the limits across jobs."""
        return self._client.limits()

    def locks(self) -> list[LockView]:
        """Return the locks."""
        return list_locks(self._store)

    def audit(self, *, who: str | None, subject: str | None, limit: int, after: str | None) -> AuditPage:
        """Return a page of the audit, newest first; with a filter, as far as two statements reach."""
        return self._client.audit(who=who, subject=subject, limit=limit, after=after, scan=_ACTS_LOOKED_AT)

    def audit_of(self, subject: str) -> tuple[AuditView, ...]:
        """Return the last acts on one job or run, among the last thousand of all, newest first."""
        return self._client.audit(subject=subject, limit=_ACTS, scan=_ACTS_LOOKED_AT // 2).entries

    def lost(self, *, job: str | None, before: RecordKey | None, until: int | None, limit: int) -> LostPage:
        """Return the attempts that were lost, newest first: after the place `before`, or from before an instant."""
        asked = Query(job=job, statuses=_LOST, before=before, until=until, limit=limit + 1, scan=_SCAN)
        page = self._store.history(asked)
        runs = tuple((key_of(one), RunView.of(one)) for one in page.records[:limit])
        return LostPage(runs, runs[-1][0] if len(page.records) > limit else page.next)

    def paused(self) -> tuple[str, ...]:
        """Return the names of the first jobs that have a pause of their own."""
        return self._store.marked(Mark.PAUSED, limit=_NAMES)

    def deeds(self, jobs: Iterable[str], lost: Iterable[RunView]) -> Deeds:
        """Return which of these jobs nodes have paused, and every attempt of these runs; at most 200 of each."""
        runs = tuple(dict.fromkeys(one.run for one in lost))
        names = tuple(dict.fromkeys((*jobs, *map(job_of, runs))))
        docs = read_jobs(self._store, names) if names else []
        ended = self._store.history(Query(runs=runs, limit=_SCAN)).records if runs else ()
        pauses = ((doc.name, doc.paused) for doc in docs)
        return Deeds(
            pauses={
                name: PauseView(at=from_us(pause.at), by=pause.by, note=pause.note, until=None)
                for name, pause in pauses
                if pause is not None and pause.by == NODES
            },
            attempts=(*running_views(docs, (), 0), *map(RunView.of, ended)),
        )

    def calendars(self) -> list[CalendarView]:
        """Return the business calendars."""
        return self._client.calendars()
