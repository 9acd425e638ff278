"""Which jobs call what code, in which pools, under which limits and calendars: for this every job must be read.

It is exact up to 200 jobs. A larger namespace is read at most once a minute: ten thousand documents take half a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from solocron.client.job_documents import JobDocuments
from solocron.model.documents.calendar import calendar_of
from solocron.model.documents.job import Job
from solocron.model.documents.run import Origin
from solocron.stores.paging import PAGE, iter_jobs, read_jobs

__all__ = ["Census", "CensusJob"]

_EXACT = 200
_KEPT_FOR = 60.0


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
        )  # fmt: skip


class Census:
    """The jobs of a namespace by name, as of the last time that all were read."""

    def __init__(self, documents: JobDocuments) -> None:
        self._store = documents.store
        self._clock = documents.runtime.clock
        self._jobs: tuple[CensusJob, ...] = ()
        self._read_at: float | None = None

    def jobs(self) -> tuple[CensusJob, ...]:
        """Return the jobs; read them again if they are few, or if it was long ago."""
        now = self._clock.boot()
        if self._read_at is None or len(self._jobs) <= _EXACT or now - self._read_at > _KEPT_FOR:
            self.renew(iter_jobs(self._store))
        return self._jobs

    def documents(self, wanted: Callable[[CensusJob], bool]) -> Iterator[Job]:
        """Yield the documents of the jobs that are wanted, as they are now."""
        names = [one.name for one in self.jobs() if wanted(one)]
        for begin in range(0, len(names), PAGE):
            page = sorted(read_jobs(self._store, names[begin : begin + PAGE]), key=lambda job: job.name)
            yield from (job for job in page if not job.removed)

    def forget(self) -> None:
        """Read the jobs again for the next caller: what they were asked for has just changed."""
        self._read_at = None

    def renew(self, jobs: Iterable[Job]) -> None:
        """Take over the jobs of a caller that has read all of them."""
        self._jobs = tuple(CensusJob.of(job) for job in jobs if not job.removed)
        self._read_at = self._clock.boot()
