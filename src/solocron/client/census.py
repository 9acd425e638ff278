"""Which code the jobs of a namespace call, and in which pools: the part of a status for which every job must be read.

It is exact up to 200 jobs. A larger namespace is read at most once a minute: ten thousand documents take half a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from solocron.client.job_documents import JobDocuments
from solocron.model.documents.job import Job
from solocron.stores.paging import iter_jobs

__all__ = ["Census", "CensusJob"]

_EXACT = 200
_KEPT_FOR = 60.0


@dataclass(frozen=True, slots=True)
class CensusJob:
    """A job that is not removed, as far as it decides which nodes can run it."""

    name: str
    pool: str
    handler: str
    application: str | None
    runs: bool
    """True if it is enabled and has no pause of its own."""

    @classmethod
    def of(cls, job: Job) -> CensusJob:
        """Take what is needed of a document."""
        definition = job.definition
        runs = definition.enabled and job.paused is None
        return cls(job.name, definition.pool, definition.handler, definition.application, runs)


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

    def renew(self, jobs: Iterable[Job]) -> None:
        """Take over the jobs of a caller that has read all of them."""
        self._jobs = tuple(CensusJob.of(job) for job in jobs if not job.removed)
        self._read_at = self._clock.boot()
