"""Fleet metrics: the state of a namespace, read from its store. Every process that answers says the same.

A look reads every job, so it is shared: by all that ask within five seconds, and for longer where it takes long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock

from solocron.client import Client
from solocron.client.job_documents import OVERDUE, JobDocuments
from solocron.clock import SECOND
from solocron.errors import InvalidError, SolocronError
from solocron.model.applications import can_run
from solocron.model.documents.alarm import KINDS
from solocron.model.documents.job import Job
from solocron.model.documents.scoped_pause import KeptBack, ScopedPause, kept_back
from solocron.model.documents.session import Session, is_live
from solocron.model.pools import last_tick
from solocron.stores.contract import Store
from solocron.stores.paging import read_sessions, sessions_since
from solocron.telemetry.families import Family
from solocron.telemetry.fleet_counts import OTHER, RUN_OUTCOMES, SLOT_OUTCOMES, LogCounts
from solocron.views import NodeView

__all__ = ["FleetMetrics"]

FRESH = 5.0
"""Seconds for which a look serves everyone."""
_SHARE = 10
"""A look that took a second is not repeated for ten."""
_SOON = 120 * SECOND
_SLOTS = 8
"""Slots from which the period of a schedule is taken: the longest gap, so that a weekend is not a delay."""
_PERIODS = 5_000
STATES = ("disabled", "paused", "orphaned", "late", "failing", "on")
NODE_STATES = ("live", "silent", "dead")


class FleetMetrics:
    """Looks at a namespace and returns the families of its metrics. Safe to call from any thread."""

    def __init__(
        self,
        client: Callable[[], Client],
        namespace: Callable[[], str],
        *,
        clock: Callable[[], float],
        most: int = 1_000,
    ) -> None:
        """Keep `client`, which returns a client whose store is open for reading, and raises if it is away."""
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._most = most
        self._lock = Lock()
        self._looked_at: float | None = None
        self._took = 0.0
        self._families: tuple[Family, ...] = ()
        self._counts = LogCounts()
        self._periods: dict[str, tuple[object, float | None]] = {}

    def families(self) -> tuple[Family, ...]:
        """Return the families as of the last look; look again if that was long ago."""
        with self._lock:
            begun = self._clock()
            if self._looked_at is None or begun - self._looked_at >= max(FRESH, _SHARE * self._took):
                try:
                    found, up = self._look(), 1.0
                except SolocronError:  # what was seen before would pass for the present state
                    found, up = [], 0.0
                self._looked_at = self._clock()
                self._took = self._looked_at - begun
                self._families = (
                    self._alone("solocron_store_up", "Whether the store answered the last look.", up),
                    self._alone("solocron_scrape_seconds", "Duration of the last look at the store.", self._took),
                    *found,
                )
            return self._families

    def _look(self) -> list[Family]:
        client, namespace = self._client(), self._namespace()
        documents, store = client.documents, client.store
        now, sessions, pauses = store.clock(), sessions_since(store), documents.pauses()
        jobs = [job for job in documents.all() if not job.removed]
        states = _states(jobs, sessions, pauses, now)
        listed = _listed(jobs, states, self._most)
        self._counts.read(store, now, lambda name: name if name in listed else OTHER)
        self._counts.keep_only(jobs)
        return [
            *self._counters(namespace, jobs, listed),
            *self._job_gauges(documents, namespace, [job for job in jobs if job.name in listed], states, now),
            *_pools(namespace, jobs, states, sessions, _ticked(store, jobs, sessions, now), now),
            _alarms(namespace, client),
        ]

    def _alone(self, name: str, help_: str, value: float) -> Family:
        family = Family(name, help_, ("namespace",))
        family.add(value, self._namespace())
        return family

    def _counters(self, namespace: str, jobs: Sequence[Job], listed: frozenset[str]) -> Iterable[Family]:
        """Yield the counters. Each begins with zero: of a series that begins with one, no increase would be seen."""
        labels = ("namespace", "job_name", "outcome")
        names = [*sorted(listed), *([OTHER] if len(jobs) > len(listed) else [])]
        for name, help_, counts, outcomes in (
            ("solocron_job_runs", "Attempts that have ended.", self._counts.runs, RUN_OUTCOMES),
            ("solocron_job_slots", "Slots that were decided without a run.", self._counts.slots, SLOT_OUTCOMES),
        ):
            family = Family(name, f"{help_} Some seconds behind.", labels, "counter")
            for job in names:
                for outcome in outcomes:
                    family.add(counts[job, outcome], namespace, job, outcome)
            yield family

    def _job_gauges(
        self, documents: JobDocuments, namespace: str, jobs: Sequence[Job], states: Mapping[str, str], now: int
    ) -> Iterable[Family]:
        made = {
            name: Family(f"solocron_job_{name}", help_, ("namespace", "job_name"))
            for name, help_ in (
                ("last_success_timestamp_seconds", "When a run last succeeded."),
                ("last_run_timestamp_seconds", "When an attempt last ended."),
                ("next_run_timestamp_seconds", "When something of it is due next."),
                ("registered_timestamp_seconds", "When it was first registered."),
                ("period_seconds", "Longest time between its next slots; none while it is disabled."),
                ("paused", "Whether a pause covers it."),
                ("running", "Runs that a node or a worker holds."),
                ("waiting", "Runs that wait, retries included."),
                ("failures_in_a_row", "Runs in a row that ended badly."),
                ("orphaned", "Whether no live node can run it."),
            )
        }
        for job in jobs:
            state = states[job.name]
            moments = {
                "last_success": self._counts.last_success(documents.store, job),
                "last_run": None if job.last is None else job.last.finished_at,
                "next_run": job.due_at,
                "registered": job.incarnation,
            }
            for what, at in moments.items():
                if at is not None:
                    made[f"{what}_timestamp_seconds"].add(at / SECOND, namespace, job.name)
            period = self._period(documents, job, now) if job.definition.enabled else None
            if period is not None:
                made["period_seconds"].add(period, namespace, job.name)
            made["paused"].add(state == "paused", namespace, job.name)
            made["running"].add(len(job.active), namespace, job.name)
            made["waiting"].add(job.waiting, namespace, job.name)
            made["failures_in_a_row"].add(job.failures, namespace, job.name)
            made["orphaned"].add(state == "orphaned", namespace, job.name)
        return made.values()

    def _period(self, documents: JobDocuments, job: Job, now: int) -> float | None:
        """Return the longest gap between the next slots; kept as long as the definition is the same."""
        known = self._periods.get(job.name)
        if known is not None and known[0] == job.definition:
            return known[1]
        period = None
        try:
            slots, at = documents.resolve(job.definition.schedule), now
            gaps: list[int] = []
            for _ in range(_SLOTS if slots.known else 0):
                following = slots.after(at)
                if following is None:
                    break
                gaps.append(following - at)
                at = following
            period = max(gaps[1:], default=0) / SECOND or None
        except InvalidError:  # a schedule that this release cannot read
            pass
        if len(self._periods) >= _PERIODS:
            self._periods.clear()
        self._periods[job.name] = job.definition, period
        return period


def _states(
    jobs: Sequence[Job], sessions: Sequence[Session], pauses: Sequence[ScopedPause], now: int
) -> dict[str, str]:
    """Return the state of each job, the one that matters most. Many jobs call the same code: each is looked at once."""
    live = [one for one in sessions if is_live(one, now=now)]
    served: dict[tuple[str, str, str | None], bool] = {}
    found: dict[str, str] = {}
    for job in jobs:
        definition = job.definition
        code = definition.pool, definition.handler, definition.application
        if code not in served:
            served[code] = any(can_run(session, definition) for session in live)
        if not definition.enabled:
            state = "disabled"
        elif job.paused is not None or kept_back(pauses, job, now=now) is not KeptBack.NOTHING:
            state = "paused"
        elif not served[code]:
            state = "orphaned"
        elif job.due_at is not None and now - job.due_at > OVERDUE:
            state = "late"
        else:
            state = "failing" if job.failures else "on"
        found[job.name] = state
    return found


def _listed(jobs: Sequence[Job], states: Mapping[str, str], most: int) -> frozenset[str]:
    """Return the jobs that have series of their own: beyond `most`, those that need attention come first."""
    if len(jobs) <= most:
        return frozenset(states)
    order = ("failing", "late", "orphaned", "paused", "on", "disabled")
    return frozenset(sorted(states, key=lambda name: (order.index(states[name]), name))[:most])


def _ticked(store: Store, jobs: Sequence[Job], sessions: Sequence[Session], now: int) -> frozenset[str]:
    """Return the pools without a live node that external triggers serve."""
    served = {pool for one in sessions if is_live(one, now=now) for pool in one.pools}
    unserved = {job.definition.pool for job in jobs} - served
    known = read_sessions(store) if unserved else []  # also those that are swept: a tick ends its session
    return frozenset(pool for pool in unserved if last_tick(pool, known) is not None)


def _pools(
    namespace: str,
    jobs: Sequence[Job],
    states: Mapping[str, str],
    sessions: Sequence[Session],
    ticked: frozenset[str],
    now: int,
) -> Iterable[Family]:
    """Yield what concerns pools. A pool that has jobs and no node has a zero, unless ticks serve it, to alert on."""
    counted = Family("solocron_jobs", "Jobs by the state that matters most.", ("namespace", "pool", "state"))
    nodes = Family("solocron_nodes", "Nodes that have not ended.", ("namespace", "pool", "state"))
    due = Family("solocron_pool_due", "Jobs that are due and not claimed.", ("namespace", "pool"))
    soon = Family("solocron_pool_soon", "Runs that are held, and jobs due within 2 minutes.", ("namespace", "pool"))
    pools = {job.definition.pool for job in jobs} | {pool for one in sessions for pool in one.pools}
    for pool in sorted(pools):
        for state in STATES:
            counted.add(0, namespace, pool, state)
        for state in NODE_STATES if pool not in ticked else ():
            nodes.add(0, namespace, pool, state)
        due.add(0, namespace, pool)
        soon.add(0, namespace, pool)
    for job in jobs:
        pool, state = job.definition.pool, states[job.name]
        counted.add(1, namespace, pool, state)
        wait = None if job.due_at is None or state in ("paused", "disabled") else job.due_at - now
        due.add(wait is not None and wait <= 0, namespace, pool)
        soon.add(len(job.active) + (wait is not None and wait <= _SOON), namespace, pool)
    for session in sessions:
        state = NodeView.of(session, now=now).state
        for pool in session.pools if state in NODE_STATES else ():
            nodes.add(1, namespace, pool, state)
    return counted, nodes, due, soon


def _alarms(namespace: str, client: Client) -> Family:
    family = Family("solocron_alarms", "Open alarms that are not silenced.", ("namespace", "kind"))
    for kind in KINDS:
        family.add(0, namespace, kind)
    for alarm in client.open_alarms().alarms:
        family.add(alarm.counts, namespace, alarm.kind)
    return family
