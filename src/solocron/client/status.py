"""The namespace at a glance, from small reads: what is held, marked, late or set aside, and the counts of a day.

Nothing here reads the log of a day or, in a large namespace, every job: see `HourCounts` and `Census`.
"""

from __future__ import annotations

from collections.abc import Sequence

from solocron.client.alarms import AlarmDesk
from solocron.client.census import Census, CensusJob
from solocron.client.hour_counts import HOUR, HourCounts
from solocron.client.job_documents import OVERDUE, JobDocuments
from solocron.client.job_order import orphaned_jobs
from solocron.client.run_lookup import offered_views, running_views
from solocron.clock import from_us
from solocron.model.documents.scoped_pause import ScopedPause, standing
from solocron.model.documents.session import Session, is_live
from solocron.model.pools import last_tick
from solocron.stores.contract import Mark
from solocron.stores.paging import iter_marked, read_held, read_jobs, read_sessions, sessions_since
from solocron.views import NodeView, ScopedPauseView, StatusView
from solocron.views.carriers import carrier_views

__all__ = ["StatusReader"]

_DAY = 24 * HOUR
_LATE = 1_000
"""Jobs that are listed as overdue at most."""


class StatusReader:
    """Reads the status of a namespace. It keeps what does not change, so a second look costs less than the first."""

    def __init__(self, documents: JobDocuments, alarms: AlarmDesk, census: Census, counts: HourCounts) -> None:
        self._documents = documents
        self._store = documents.store
        self._alarms = alarms
        self._census = census
        self._counts = counts

    def status(self) -> StatusView:
        """Return the nodes, the running attempts, the counts of the last 24 hours, and what needs attention.

        `orphaned` and `unserved` are up to a minute old in a namespace of more than 200 jobs.
        """
        store, now = self._store, self._store.clock()
        sessions, counted = sessions_since(store), store.count_jobs()
        pauses, jobs = standing(self._documents.pauses(), now), self._census.jobs()
        nodes = sorted((NodeView.of(one, now=now) for one in sessions), key=lambda view: (view.node, view.session))
        held = read_held(store)
        return StatusView(
            store=store.url,
            tier=str(store.capabilities.tier),
            namespace=store.namespace,
            now=from_us(now),
            nodes=tuple(nodes),
            running=tuple(running_views(held, sessions, now)),
            offered=tuple(offered_views(held)),
            carriers=tuple(carrier_views(held)),
            counts=self._counts.total(now - _DAY, now),
            jobs=counted.all - counted.marked[Mark.REMOVED],
            paused=tuple(iter_marked(store, Mark.PAUSED)) if counted.marked[Mark.PAUSED] else (),
            pauses=tuple(ScopedPauseView.of(one) for one in sorted(pauses, key=lambda one: one.at)),
            orphaned=tuple(one.name for one in orphaned_jobs(self._census, sessions, now)),
            blocked=tuple(blocked.name for blocked in store.blocked()),
            overdue=self._overdue(pauses, now),
            unserved=self._unserved(jobs, sessions, pauses, now),
            alarms=self._alarms.open_alarms().alarms,
        )

    def _overdue(self, pauses: Sequence[ScopedPause], now: int) -> tuple[str, ...]:
        """Return the jobs that are due for long, by name. What a pause of many keeps back is not late."""
        names = sorted(name for _, name in self._store.due_times(_LATE, until=now - OVERDUE))
        if not pauses or not names:
            return tuple(names)
        return tuple(
            job.name for job in read_jobs(self._store, names) if not any(one.scope.covers(job) for one in pauses)
        )

    def _unserved(
        self, jobs: Sequence[CensusJob], sessions: Sequence[Session], pauses: Sequence[ScopedPause], now: int
    ) -> dict[str, int]:
        """Return the pools that neither live nodes nor ticks serve, and how many of their jobs want to run."""
        live = {pool for one in sessions if is_live(one, now=now) for pool in one.pools}
        found: dict[str, int] = {}
        for job in jobs:
            if job.pool not in live and job.runs and not any(one.scope.reaches(job.name, job.pool) for one in pauses):
                found[job.pool] = found.get(job.pool, 0) + 1
        if not found:
            return {}
        known = read_sessions(self._store)  # also those that are swept: the last one of a pool may be that of a tick
        return {pool: count for pool, count in sorted(found.items()) if last_tick(pool, known) is None}
