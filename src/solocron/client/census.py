"""Which jobs call what code, in which pools, under which limits and calendars: for this every job must be read.

It is exact up to 200 jobs. A larger namespace is read at most once a minute: ten thousand documents take half a second.
A service lets its watcher read them ahead of time, a page at each pass, so that no request waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from solocron.client.job_documents import JobDocuments
from solocron.clock import from_us
from solocron.model.documents.calendar import calendar_of
from solocron.model.documents.job import Job
from solocron.model.documents.run import Origin
from solocron.stores.paging import PAGE, iter_jobs, read_jobs

__all__ = ["Census", "CensusJob"]

_EXACT = 200
_KEPT_FOR = 60.0
_AHEAD = 30.0
"""Age in seconds from which the jobs are read ahead of time."""


@dataclass(frozen=True, slots=True)
class CensusJob:
    """A job that is not removed, as far as listings look for it that have no index."""

    name: str
    pool: str
    handler: str
    application: str | None
    runs: bool
    """True if it is enabled and has no pause of its own."""
    limit: str | None
    calendar: str | None
    backfilled: bool
    """True if a backfill of it has slots to start."""
    created_at: int

    @classmethod
    def of(cls, job: Job) -> CensusJob:
        """Take what is needed of a document."""
        definition = job.definition
        return cls(
            job.name, definition.pool, definition.handler, definition.application,
            runs=definition.enabled and job.paused is None,
            limit=definition.limit,
            calendar=calendar_of(definition.schedule),
            backfilled=any(one.origin is Origin.BACKFILL for one in job.waiting_ranges),
            created_at=job.incarnation,
        )  # fmt: skip


class Census:
    """The jobs of a namespace by name, as of the last time that all were read."""

    def __init__(self, documents: JobDocuments) -> None:
        self._store = documents.store
        self._clock = documents.runtime.clock
        self._jobs: tuple[CensusJob, ...] = ()
        self._read_at: float | None = None
        self._next: list[CensusJob] = []
        self._next_after: str | None = None

    def jobs(self) -> tuple[CensusJob, ...]:
        """Return the jobs; read them again if they are few, or if it was long ago."""
        now = self._clock.boot()
        if self._read_at is None or len(self._jobs) <= _EXACT or now - self._read_at > _KEPT_FOR:
            self.renew(iter_jobs(self._store))
        return self._jobs

    def read_ahead(self) -> None:
        """Read one page of the next census, if the present one is getting old; the last page takes its place."""
        now = self._clock.boot()
        if self._read_at is None or len(self._jobs) <= _EXACT or now - self._read_at < _AHEAD:
            return  # a caller reads it: at first, or because it is cheap
        page = list(islice(iter_jobs(self._store, size=PAGE, after=self._next_after or ""), PAGE))
        self._next += (CensusJob.of(job) for job in page if not job.removed)
        self._next_after = page[-1].name if page else None
        if len(page) < PAGE:
            self._jobs, self._read_at = tuple(self._next), now
            self._next, self._next_after = [], None

    def first_created(self) -> datetime | None:
        """Return when the oldest of the jobs was made; None if there is none."""
        return min((from_us(one.created_at) for one in self.jobs()), default=None)

    def documents(self, wanted: Callable[[CensusJob], bool]) -> Iterator[Job]:
        """Yield the documents of the jobs that are wanted, as they are now."""
        names = [one.name for one in self.jobs() if wanted(one)]
        for begin in range(0, len(names), PAGE):
            page = sorted(read_jobs(self._store, names[begin : begin + PAGE]), key=lambda job: job.name)
            yield from (job for job in page if not job.removed)

    def forget(self) -> None:
        """Read the jobs again for the next caller: what they were asked for has just changed."""
        self._read_at = self._next_after = None
        self._next = []

    def renew(self, jobs: Iterable[Job]) -> None:
        """Take over the jobs of a caller that has read all of them."""
        self._jobs = tuple(CensusJob.of(job) for job in jobs if not job.removed)
        self._read_at = self._clock.boot()
        self._next, self._next_after = [], None
