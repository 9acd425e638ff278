"""List jobs in pages: by name, by their next slot, or those first that need a look; filtered by name, pool and state.

A page costs what it has to look at. The index of names answers a limit and the literal beginning of a pattern. Any
other pattern is compared with names, without their documents. What runs, is late, failing, disabled or paused has an
index of its own. Pool, tags and the other states are in the documents, which are read a page at a time until enough are
found, or as many as the caller allows were looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import islice

from solocron.client.census import Census
from solocron.client.job_documents import OVERDUE, JobDocuments, is_orphaned
from solocron.client.job_order import JobNames, OrderBy, is_stuck
from solocron.errors import InvalidError, NotFoundError
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.model.documents.scoped_pause import KeptBack, ScopedPause, kept_back, standing
from solocron.model.documents.session import Session
from solocron.stores.contract import Mark
from solocron.stores.paging import (
    PAGE,
    iter_jobs_below,
    iter_marked,
    iter_names,
    read_jobs,
    sessions_since,
)
from solocron.views import JobView

__all__ = ["JobListing", "JobPage", "JobState", "WantedJobs"]

_MARKS = {"paused": Mark.PAUSED, "failing": Mark.FAILING, "disabled": Mark.DISABLED}
_INDEXED = frozenset([*_MARKS, "running", "late", "stuck", "orphaned", "not_well", "set_aside"])
_ILL = frozenset(["stuck", "failing", "late"])
_DOCUMENTS = 200
"""Documents that are read at once by their names."""
_NAMES = 10_000
"""Names that are read at once to be compared with a pattern: they are short."""


class JobState(StrEnum):
    """States of a job to look for. A job can be in several, such as paused and running."""

    ON = "on"
    """It is enabled and not paused."""
    PAUSED = "paused"
    DISABLED = "disabled"
    RUNNING = "running"
    WAITING = "waiting"
    """Runs of it wait: queued, caught up, to be retried or delayed."""
    FAILING = "failing"
    """Its last run failed."""
    LATE = "late"
    """It is due for more than five minutes, and not claimed."""
    ORPHANED = "orphaned"
    """No live node can run it."""
    STUCK = "stuck"
    """A run of it goes on although it was asked to stop."""
    NOT_WELL = "not_well"
    """It is stuck, failing, late or orphaned."""
    SET_ASIDE = "set_aside"
    """Its document fails on its own, so that nodes leave it alone for a while."""
    NEVER_RAN = "never_ran"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedJobs:
    """Which jobs are wanted."""

    match: str | None = None
    """A pattern for the whole name: `*`, `?` and `[...]` as in a shell."""
    words: tuple[str, ...] = ()
    """All of these are in the name, whatever their case."""
    pools: frozenset[str] = frozenset()
    but_pools: frozenset[str] = frozenset()
    """None of these pools."""
    states: frozenset[str] = frozenset()
    """One of these is enough."""
    tags: frozenset[str] = frozenset()
    """All of these are needed."""
    late_after: int = OVERDUE
    """Microseconds after which a job that is due and not claimed is late."""

    def __post_init__(self) -> None:
        for state in sorted(self.states):
            if state not in set(JobState):
                raise InvalidError(f"state {state!r:.40} is not known; choose from {', '.join(JobState)}.")

    @property
    def prefix(self) -> str:
        """The literal beginning of the pattern."""
        return re.split(r"[*?[]", self.match or "", maxsplit=1)[0]

    @property
    def prefix_only(self) -> bool:
        """True if nothing more is said of a name than how it begins."""
        return not self.words and (self.match is None or self.match == f"{self.prefix}*")

    def names(self, name: str) -> bool:
        """Return whether the pattern and the words fit a name."""
        return (self.match is None or fnmatchcase(name, self.match)) and all(
            word.lower() in name.lower() for word in self.words
        )


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs in their order, and the name after which the next page begins; None if there is nothing more."""

    jobs: tuple[JobView, ...]
    next: str | None = None


class JobListing:
    """Pages of jobs."""

    def __init__(self, documents: JobDocuments, census: Census) -> None:
        self._documents = documents
        self._census = census
        self._store = documents.store

    def page(
        self,
        wanted: WantedJobs,
        *,
        limit: int | None = None,
        after: str = "",
        order: OrderBy = "name",
        scan: int | None = None,
    ) -> JobPage:
        """Return at most `limit` jobs (None: all) that come after the job `after`.

        With `scan`, the search ends after so many documents: the page may be short, and the next one goes on there.
        Raise NotFoundError if `after` is not in the order any more.
        """
        sessions, now, pauses = sessions_since(self._store), self._store.clock(), self._documents.pauses()
        names = JobNames(self._store, self._census, sessions, standing(pauses, now), now)
        aside = names.set_aside() if JobState.SET_ASIDE in wanted.states else frozenset[str]()
        found, looked, last = list[Job](), 0, ""
        for job in self._candidates(wanted, after, limit, order, names, standing(pauses, now)):
            if looked == scan:
                return JobPage(self._views(found, sessions, now, pauses), last)
            looked, last = looked + 1, job.name
            if job.removed or not _is_wanted(job, wanted, sessions, now, pauses, aside):
                continue
            if len(found) == limit:
                return JobPage(self._views(found, sessions, now, pauses), found[-1].name)
            found.append(job)
        return JobPage(self._views(found, sessions, now, pauses))

    def count_not_well(self, late_after: int = OVERDUE, *, most: int | None = None) -> int:
        """Return how many jobs are stuck, failing, late or orphaned, counted by their names alone, up to `most`."""
        sessions, now, pauses = sessions_since(self._store), self._store.clock(), self._documents.pauses()
        names = JobNames(self._store, self._census, sessions, standing(pauses, now), now)
        return sum(1 for _ in islice(names.not_well(late_after), most))

    def _views(
        self, jobs: list[Job], sessions: list[Session], now: int, pauses: Sequence[ScopedPause]
    ) -> tuple[JobView, ...]:
        self._documents.calendars.learn(jobs)
        return tuple(self._documents.view_of(job, sessions, now, pauses) for job in jobs)

    def _candidates(
        self,
        wanted: WantedJobs,
        after: str,
        limit: int | None,
        order: OrderBy,
        names: JobNames,
        pauses: Sequence[ScopedPause],
    ) -> Iterator[Job]:
        """Yield every job in its order that the narrowest index finds, each page when the one before is used up."""
        first = _DOCUMENTS if limit is None else min(_DOCUMENTS, limit + 1)
        if order == "attention" and not after and wanted.states and wanted.states <= _ILL:
            ill = names.ill(wanted.states, wanted.late_after)  # of ten thousand late jobs a first page needs a few
            yield from self._read(filter(wanted.names, ill), first)
            return
        narrow = self._narrowed(wanted, names, pauses)
        if order != "name":
            ordered = names.by_attention(wanted.late_after) if order == "attention" else names.by_next()
            rest = _behind(ordered, after) if after else ordered
            fitting = (name for name in rest if wanted.names(name) and (narrow is None or name in narrow))
            yield from self._read(fitting, first)
        elif narrow is not None:
            yield from self._read((name for name in sorted(narrow) if name > after and wanted.names(name)), first)
        elif wanted.prefix_only:
            plain = not (wanted.pools or wanted.but_pools or wanted.states or wanted.tags) and limit is not None
            size = min(PAGE, limit + 1) if plain and limit is not None else PAGE
            yield from iter_jobs_below(self._store, wanted.prefix, size=size, after=after)
        else:
            yield from self._read(self._named(wanted, after), first)

    def _narrowed(
        self, wanted: WantedJobs, names: JobNames, pauses: Sequence[ScopedPause]
    ) -> frozenset[str] | set[str] | None:
        """Return names among which all wanted jobs are, by the indexes of their states; None if no index has them."""
        states = wanted.states
        if not states or not states <= _INDEXED or (pauses and JobState.PAUSED in states):
            return None
        found: set[str] = set()
        for mark in (mark for state, mark in _MARKS.items() if state in states):
            found.update(iter_marked(self._store, mark))
        if JobState.RUNNING in states:
            found.update(job.name for job in names.held())
        if JobState.LATE in states:
            found.update(names.late(wanted.late_after))
        if JobState.STUCK in states:
            found.update(names.stuck())
        if JobState.ORPHANED in states:
            found.update(name for name, pool in names.orphans().items() if pool not in wanted.but_pools)
        if JobState.NOT_WELL in states:
            found.update(names.not_well(wanted.late_after))
        if JobState.SET_ASIDE in states:
            found |= names.set_aside()
        return found

    def _named(self, wanted: WantedJobs, after: str) -> Iterator[str]:
        if wanted.prefix > after and wanted.names(wanted.prefix):
            yield wanted.prefix
        for name in iter_names(self._store, Kind.JOB, size=_NAMES, after=max(after, wanted.prefix)):
            if not name.startswith(wanted.prefix):
                return
            if wanted.names(name):
                yield name

    def _read(self, names: Iterator[str], first: int) -> Iterator[Job]:
        """Yield the jobs of these names in their order: as many at once as the page needs, then more."""
        size = first
        while some := list(islice(names, size)):
            found = {job.name: job for job in read_jobs(self._store, some)}
            yield from (found[name] for name in some if name in found)
            size = _DOCUMENTS


def _behind(names: Iterator[str], after: str) -> Iterator[str]:
    """Return what follows a name in an order."""
    if after not in names:  # this uses the iterator up to the name
        raise NotFoundError(f"the job {after!r}, at which the page before ended, is not listed any more; begin anew.")
    return names


def _is_wanted(
    job: Job,
    wanted: WantedJobs,
    sessions: list[Session],
    now: int,
    pauses: Sequence[ScopedPause],
    aside: frozenset[str],
) -> bool:
    pool = job.definition.pool
    if pool in wanted.but_pools or (wanted.pools and pool not in wanted.pools):
        return False
    if not wanted.tags <= frozenset(job.definition.tags):
        return False
    paused = job.paused is not None or kept_back(pauses, job, now=now) is not KeptBack.NOTHING
    late = job.due_at is not None and now - job.due_at > wanted.late_after and not paused
    states = map(JobState, wanted.states)
    return not wanted.states or any(
        _is_in(one, job, sessions, now, paused=paused, late=late, aside=job.name in aside) for one in states
    )


def _is_in(
    state: JobState, job: Job, sessions: list[Session], now: int, *, paused: bool, late: bool, aside: bool
) -> bool:
    match state:
        case JobState.ON:
            return job.definition.enabled and not paused
        case JobState.PAUSED:
            return paused
        case JobState.DISABLED:
            return not job.definition.enabled
        case JobState.RUNNING:
            return bool(job.active)
        case JobState.WAITING:
            return job.waiting > 0
        case JobState.FAILING:
            return job.failures > 0
        case JobState.LATE:
            return late
        case JobState.ORPHANED:
            return is_orphaned(job, sessions, now)
        case JobState.STUCK:
            return is_stuck(job, sessions, now)
        case JobState.NOT_WELL:
            return late or job.failures > 0 or is_orphaned(job, sessions, now) or is_stuck(job, sessions, now)
        case JobState.SET_ASIDE:
            return aside
        case JobState.NEVER_RAN:
            return job.last is None
