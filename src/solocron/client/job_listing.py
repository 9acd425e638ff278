"""List jobs by name, in pages, filtered by pattern, pool and state.

A page costs what it has to look at. The index of names answers a limit and the literal beginning of a pattern. Any
other pattern is compared with names, without their documents. What runs, is late, failing, disabled or paused has an
index of its own. Pool, tags and the other states are in the documents, which are read a page at a time until enough are
found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import reduce
from operator import or_

from solocron.client.job_documents import OVERDUE, JobDocuments, is_orphaned
from solocron.errors import InvalidError
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.model.documents.scoped_pause import KeptBack, ScopedPause, kept_back, standing
from solocron.model.documents.session import Session
from solocron.stores.contract import Mark
from solocron.stores.paging import (
    PAGE,
    iter_jobs_below,
    iter_late,
    iter_marked,
    iter_names,
    read_held,
    read_jobs,
    sessions_since,
)
from solocron.views import JobView

__all__ = ["JobListing", "JobPage", "JobState", "WantedJobs"]

_MARKS = {"paused": Mark.PAUSED, "failing": Mark.FAILING, "disabled": Mark.DISABLED}
_INDEXED = frozenset([*_MARKS, "running", "late"])
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedJobs:
    """Which jobs are wanted."""

    match: str | None = None
    """A pattern for the whole name: `*`, `?` and `[...]` as in a shell."""
    pools: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    """One of these is enough."""
    tags: frozenset[str] = frozenset()
    """All of these are needed."""

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
        """True if the pattern says no more than how a name begins."""
        return self.match is None or self.match == f"{self.prefix}*"

    def names(self, name: str) -> bool:
        """Return whether the pattern fits a name."""
        return self.match is None or fnmatchcase(name, self.match)


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs by name, and the name after which the next page begins; None if there is nothing more."""

    jobs: tuple[JobView, ...]
    next: str | None = None


class JobListing:
    """Pages of jobs."""

    def __init__(self, documents: JobDocuments) -> None:
        self._documents = documents
        self._store = documents.store

    def page(self, wanted: WantedJobs, *, limit: int | None = None, after: str = "") -> JobPage:
        """Return at most `limit` jobs (None: all) whose names come after `after`."""
        sessions, now, pauses = sessions_since(self._store), self._store.clock(), self._documents.pauses()
        found: list[Job] = []
        for job in self._candidates(wanted, after, limit, standing(pauses, now), now):
            if job.removed or not _is_wanted(job, wanted, sessions, now, pauses):
                continue
            if len(found) == limit:
                return JobPage(self._views(found, sessions, now, pauses), found[-1].name)
            found.append(job)
        return JobPage(self._views(found, sessions, now, pauses))

    def _views(
        self, jobs: list[Job], sessions: list[Session], now: int, pauses: Sequence[ScopedPause]
    ) -> tuple[JobView, ...]:
        self._documents.calendars.learn(jobs)
        return tuple(self._documents.view_of(job, sessions, now, pauses) for job in jobs)

    def _candidates(
        self, wanted: WantedJobs, after: str, limit: int | None, pauses: Sequence[ScopedPause], now: int
    ) -> Iterator[Job]:
        """Yield every job by name that the narrowest index finds, each page when the one before is used up."""
        if wanted.states and wanted.states <= _INDEXED and not (pauses and JobState.PAUSED in wanted.states):
            names = sorted(name for name in self._indexed(wanted.states, after, now) if wanted.names(name))
            for begin in range(0, len(names), _DOCUMENTS):
                yield from self._by_name(names[begin : begin + _DOCUMENTS])
        elif wanted.prefix_only:
            plain = not wanted.pools and not wanted.states and not wanted.tags and limit is not None
            size = min(PAGE, limit + 1) if plain and limit is not None else PAGE
            yield from iter_jobs_below(self._store, wanted.prefix, size=size, after=after)
        else:
            yield from self._named(wanted, after)

    def _indexed(self, states: frozenset[str], after: str, now: int) -> set[str]:
        """Return the names of the jobs that the indexes have for these states, without their documents."""
        found: set[str] = set()
        marks = [mark for state, mark in _MARKS.items() if state in states]
        if marks:
            found.update(iter_marked(self._store, reduce(or_, marks), after=after))
        if JobState.RUNNING in states:
            found.update(job.name for job in read_held(self._store))
        if JobState.LATE in states:
            found.update(iter_late(self._store, now - OVERDUE))
        return {name for name in found if name > after}

    def _named(self, wanted: WantedJobs, after: str) -> Iterator[Job]:
        names = list[str]()
        if wanted.prefix > after and wanted.names(wanted.prefix):
            names.append(wanted.prefix)
        for name in iter_names(self._store, Kind.JOB, size=_NAMES, after=max(after, wanted.prefix)):
            if not name.startswith(wanted.prefix):
                break
            if wanted.names(name):
                names.append(name)
            if len(names) == _DOCUMENTS:
                yield from self._by_name(names)
                names = []
        yield from self._by_name(names)

    def _by_name(self, names: list[str]) -> list[Job]:
        return sorted(read_jobs(self._store, names), key=lambda job: job.name) if names else []


def _is_wanted(job: Job, wanted: WantedJobs, sessions: list[Session], now: int, pauses: Sequence[ScopedPause]) -> bool:
    if wanted.pools and job.definition.pool not in wanted.pools:
        return False
    if not wanted.tags <= frozenset(job.definition.tags):
        return False
    paused = job.paused is not None or kept_back(pauses, job, now=now) is not KeptBack.NOTHING
    return not wanted.states or any(_is_in(JobState(one), job, sessions, now, paused) for one in wanted.states)


def _is_in(state: JobState, job: Job, sessions: list[Session], now: int, paused: bool) -> bool:
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
            return job.due_at is not None and now - job.due_at > OVERDUE and not paused
        case JobState.ORPHANED:
            return is_orphaned(job, sessions, now)
