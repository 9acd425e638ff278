"""`Board`: what the pages of one process share for a moment, so that many readers cost the store little more than one.

Everything here is bounded, and read again from the store at will.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any, TypeVar

from solocron.client.job_listing import WantedJobs
from solocron.clock import SECOND
from solocron.service.board.counting import FirstCount, StillCounting
from solocron.service.moments import adopt, lasting, moment
from solocron.service.pages.fates import fates_of_runs
from solocron.service.pages.slots import SlotFate
from solocron.service.reads import Reads, StatusAnswer
from solocron.views import JobView

__all__ = ["LATE", "Board", "Glance"]

T = TypeVar("T")

LATE = 5 * SECOND
"""Microseconds after which a page says of a job that is due and not claimed that it is late."""
_FRESH = 0.5
_SHARE = 10
"""A glance is kept for so many times as long as it took: a large namespace costs a tenth of a core at most."""
_WAITS = 0.5
"""Seconds that the first pages wait for the count of the last hours, before they are shown without it."""
_WORST = 12
_ILL = frozenset(["stuck", "failing", "late"])
_ORPHANED = frozenset(["orphaned"])
_STRIP = 30
_STRIPS_KEPT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """The namespace as of one moment, at the cost of what is not well and not of what there is."""

    status: StatusAnswer
    not_well: int
    """How many jobs are stuck, failing, late or orphaned; one more than `MOST_NOT_WELL` means more."""
    worst: tuple[JobView, ...]
    """The first of them by attention, but for the orphaned ones of a pool without a node: the pool is told."""
    began_at: datetime | None
    """When the oldest job was made; None if there is none."""


class Board:
    """Reads the namespace at most twice a second, however many pages are open."""

    def __init__(
        self,
        reads: Reads,
        count: FirstCount,
        *,
        clock: Callable[[], float],
        position: Callable[[], Hashable],
    ) -> None:
        self._reads = reads
        self._count = count
        self._position = position
        self._known: Hashable = None
        self._clock = clock
        self._lock = Lock()
        self._glance: Glance | None = None
        self._until = 0.0
        self._read: Mapping[Hashable, Any] = {}
        self._kept: dict[Hashable, Any] = {}
        self._strips: dict[str, tuple[object, tuple[SlotFate, ...]]] = {}

    def glance(self) -> Glance:
        """Return the namespace as it was a moment ago; raise StillCounting in the first seconds of a large one."""
        self._count.check(_WAITS)
        with self._lock:
            begun, known = self._clock(), self._position()
            # A page that was told of a change must not be shown what was before it.
            if self._glance is None or begun >= self._until or known != self._known:
                with moment() as read:
                    self._glance, self._known = self._look(), known
                self._read, self._kept = lasting(read), {}
                adopt(read)  # the page that asked reads none of it once more
                took = self._clock() - begun
                self._until = begun + took + max(_FRESH, _SHARE * took)
            return self._glance

    def known(self) -> Mapping[Hashable, Any]:
        """Return what the last glance has read, as long as it is good: sessions, pauses, alarms, what is held."""
        good = self._clock() < self._until and self._position() == self._known
        return self._read if good else {}

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made for this key since the last glance; make it if it was not. Keys are few."""
        self.glance()
        kept = self._kept
        if key not in kept:
            kept[key] = make()
        found: T = kept[key]
        return found

    def glance_if_counted(self) -> Glance | None:
        """Return the namespace as it was a moment ago, or None for a page that can do without it so far."""
        try:
            return self.glance()
        except StillCounting:
            return None

    def close(self) -> None:
        """Stop what is counted in the background."""
        self._count.close()

    def _look(self) -> Glance:
        status, not_well = self._reads.status(), self._reads.count_not_well(LATE)
        worst: tuple[JobView, ...] = ()
        if not_well:
            ill = WantedJobs(states=_ILL, late_after=LATE)
            alone = WantedJobs(states=_ORPHANED, but_pools=frozenset(status.unserved))
            worst = self._reads.jobs(ill, limit=_WORST, order="attention").jobs
            if len(status.orphaned) + status.more.get("orphaned", 0) > sum(status.unserved.values()):
                worst += self._reads.jobs(alone, limit=_WORST).jobs
        return Glance(status=status, not_well=not_well, worst=worst, began_at=self._reads.first_created())

    def forget(self) -> None:
        """Read the namespace anew for the next page, because this process has changed it."""
        with self._lock:
            self._until = 0.0

    def strips(self, jobs: Iterable[JobView]) -> dict[str, tuple[SlotFate, ...]]:
        """Return the last slots of jobs, oldest first; a job that has not changed is not read again."""
        states = {
            job.name: (
                job.cursor,
                job.last_slot,
                job.last_status,
                tuple((run.run, run.attempt) for run in job.running),
                job.waiting,
            )
            for job in jobs
        }
        kept = {name: self._strips.get(name) for name in states}  # another request may empty it meanwhile
        found = {name: one[1] for name, one in kept.items() if one is not None and one[0] == states[name]}
        changed = [name for name in states if name not in found]
        if not changed:
            return found
        if len(self._strips) + len(changed) > _STRIPS_KEPT:
            self._strips.clear()
        for name, runs in self._reads.newest_runs(changed, _STRIP * 2).items():
            found[name] = fates_of_runs(runs)[-_STRIP:]
            self._strips[name] = (states[name], found[name])
        return found
