"""`Board`: what the pages of one process share for a moment, so that many readers cost the store little more than one.

Everything here is bounded, and read again from the store at will.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock

from solocron.client.run_listing import WantedRuns
from solocron.service.pages.fates import fates_of_runs
from solocron.service.pages.slots import SlotFate
from solocron.service.reads import Reads, StatusAnswer
from solocron.views import JobView

__all__ = ["Board", "Glance"]

_FRESH = 0.5
_SHARE = 10
"""A glance is kept for so many times as long as it took: a large namespace costs a tenth of a core at most."""
_STRIP = 30
_STRIPS_KEPT = 2_000
_STRIPS_WITHIN = 0.15
"""Seconds that one page spends on strips; those that are not read yet come with the next one."""


@dataclass(frozen=True, slots=True)
class Glance:
    """The namespace and all its jobs, as of one moment."""

    status: StatusAnswer
    jobs: tuple[JobView, ...]


class Board:
    """Reads the namespace at most twice a second, however many pages are open."""

    def __init__(self, reads: Reads, *, clock: Callable[[], float]) -> None:
        self._reads = reads
        self._clock = clock
        self._lock = Lock()
        self._glance: Glance | None = None
        self._until = 0.0
        self._strips: dict[str, tuple[object, tuple[SlotFate, ...]]] = {}

    def glance(self) -> Glance:
        """Return the namespace as it was a moment ago."""
        with self._lock:
            begun = self._clock()
            if self._glance is None or begun >= self._until:
                self._glance = Glance(self._reads.status(), tuple(self._reads.all_jobs()))
                took = self._clock() - begun
                self._until = begun + took + max(_FRESH, _SHARE * took)
            return self._glance

    def forget(self) -> None:
        """Read the namespace anew for the next page, because this process has changed it."""
        with self._lock:
            self._until = 0.0

    def strips(self, jobs: Iterable[JobView]) -> dict[str, tuple[SlotFate, ...]]:
        """Return the last slots of jobs, oldest first; a job that has not changed is not read again."""
        found, until = dict[str, tuple[SlotFate, ...]](), self._clock() + _STRIPS_WITHIN
        for job in jobs:
            state = (
                job.cursor,
                job.last_slot,
                job.last_status,
                tuple((run.run, run.attempt) for run in job.running),
                job.waiting,
            )
            known = self._strips.get(job.name)
            if (known is None or known[0] != state) and self._clock() < until:
                page = self._reads.runs(WantedRuns(job=job.name), limit=_STRIP * 2, before=None)
                known = (state, fates_of_runs(page.runs)[-_STRIP:])
                if len(self._strips) >= _STRIPS_KEPT:
                    self._strips.clear()
                self._strips[job.name] = known
            if known is not None:
                found[job.name] = known[1]
        return found
