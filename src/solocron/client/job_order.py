"""The names of jobs by their next slot, or with those first that need a look, each name read only when it is wanted.

No index has these orders, and a namespace may have ten thousand jobs. Indexes have their parts: what is marked as
failing, what is due first, what is held. So the parts follow each other, and a caller that wants a page pays for a
page. Only the names of documents are read here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal

from solocron.client.census import Census, CensusJob
from solocron.model.applications import can_run
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.model.documents.scoped_pause import ScopedPause
from solocron.model.documents.session import Session, is_live
from solocron.model.transitions.claimant import stuck_since
from solocron.stores.contract import Mark, Store
from solocron.stores.paging import iter_marked, iter_names, read_held

__all__ = ["JobNames", "OrderBy", "is_stuck", "orphaned_jobs"]

OrderBy = Literal["name", "next", "attention"]
_FOREVER = 2**62
_NAMES = 1_000
_EARLY = 200
"""Names of a first page of what is due: most callers want no more."""


class JobNames:
    """Names of jobs as of one moment, for one listing. What several parts need is read once."""

    def __init__(
        self, store: Store, census: Census, sessions: Sequence[Session], pauses: Sequence[ScopedPause], now: int
    ) -> None:
        self._store = store
        self._census = census
        self._sessions = sessions
        self._pauses = pauses
        self._now = now
        self._held: list[Job] | None = None
        self._orphans: dict[str, str] | None = None

    def by_next(self) -> Iterator[str]:
        """Yield every name by when the job is due, then those that are not due ever, by name."""
        return _once(self._due(), self._all())

    def by_attention(self, late_after: int) -> Iterator[str]:
        """Yield what is stuck, fails, is late, is orphaned or runs; then every other name by when its job is due."""
        running = sorted(job.name for job in self.held())
        return _once(self.not_well(late_after), running, self._due(), self._all())

    def not_well(self, late_after: int) -> Iterator[str]:
        """Yield what is stuck, fails, is late or is orphaned, in this order."""
        orphans = self.orphans()
        return _once(
            self.stuck(),
            iter_marked(self._store, Mark.FAILING),
            (name for name in self.late(late_after) if name not in orphans),
            (name for name in self._due() if name in orphans) if orphans else (),
            sorted(orphans),
        )

    def ill(self, states: Collection[str], late_after: int) -> Iterator[str]:
        """Yield what is stuck, fails or is late, each if it is among `states`, in the order of attention."""
        orphans = self.orphans()
        parts: list[Iterable[str]] = []
        if "stuck" in states:
            parts.append(self.stuck())
        if "failing" in states:
            parts.append(iter_marked(self._store, Mark.FAILING))
        if "late" in states:
            parts.append(name for name in self.late(late_after) if name not in orphans)
            parts.append(name for name in (self.late(late_after) if orphans else ()) if name in orphans)
        return _once(*parts)

    def stuck(self) -> list[str]:
        """Return the jobs of which a run goes on although it was asked to stop."""
        return sorted(job.name for job in self.held() if is_stuck(job, self._sessions, self._now))

    def late(self, after: int) -> Iterator[str]:
        """Yield the jobs that are due for longer than `after` microseconds; what a pause keeps back is not late."""
        late = self._due(self._now - after)
        if not self._pauses:
            return late
        kept_back = {
            one.name for one in self._census.jobs() if any(p.scope.reaches(one.name, one.pool) for p in self._pauses)
        }
        return (name for name in late if name not in kept_back)

    def held(self) -> list[Job]:
        """Return the jobs that any session holds."""
        if self._held is None:
            self._held = read_held(self._store)
        return self._held

    def orphans(self) -> dict[str, str]:
        """Return the jobs that no live node can run, as of the last census, each with its pool."""
        if self._orphans is None:
            found = orphaned_jobs(self._census, self._sessions, self._now)
            self._orphans = {one.name: one.pool for one in found}
        return self._orphans

    def set_aside(self) -> frozenset[str]:
        """Return the jobs that are set aside, because their documents fail on their own."""
        return frozenset(one.name for one in self._store.blocked() if one.kind is Kind.JOB)

    def _due(self, until: int = _FOREVER) -> Iterator[str]:
        after, size = None, _EARLY
        while True:
            page = self._store.due_times(size, after=after, until=until)
            yield from (name for _, name in page)
            if len(page) < size:
                return
            after, size = page[-1], _NAMES

    def _all(self) -> Iterator[str]:
        return iter_names(self._store, Kind.JOB)


def orphaned_jobs(census: Census, sessions: Iterable[Session], now: int) -> list[CensusJob]:
    """Return the jobs that no live node can run, by name. Many jobs call the same code, so each is looked at once."""
    live = [one for one in sessions if is_live(one, now=now)]
    served: dict[tuple[str, str, str | None], bool] = {}
    found = []
    for job in census.jobs():
        code = job.pool, job.handler, job.application
        if code not in served:
            served[code] = any(can_run(session, job) for session in live)
        if not served[code]:
            found.append(job)
    return found


def is_stuck(job: Job, sessions: Iterable[Session], now: int) -> bool:
    """Return whether a run of the job goes on under a live lease although it was asked to stop."""
    leases = {one.name: one.lease for one in sessions if is_live(one, now=now)} if job.active else {}
    return any(
        hold.session in leases and stuck_since(hold, lease=leases[hold.session], now=now) is not None
        for hold in job.active
    )


def _once(*parts: Iterable[str]) -> Iterator[str]:
    """Yield the names of the parts one after the other, each name once."""
    seen: set[str] = set()
    for part in parts:
        for name in part:
            if name not in seen:
                seen.add(name)
                yield name
