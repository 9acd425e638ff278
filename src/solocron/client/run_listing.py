"""List runs in pages: what runs or waits in a queue first, latest claim first, then the log, newest first.

A page says where the next one begins by the place of its last run and never by a count, so that runs which begin or end
between two pages shift nothing. A run that ends in between is on the pages of the log; it may be listed twice, once as
running, and is never left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from solocron.client.instants import check_instant
from solocron.client.job_documents import JobDocuments
from solocron.client.run_lookup import RunLookup, offered_views, running_views
from solocron.clock import from_us, iso, to_us
from solocron.errors import InvalidError
from solocron.model.documents.run import ENDED, Origin, Status
from solocron.near import did_you_mean
from solocron.stores.contract import Query, RecordKey
from solocron.stores.log import key_of
from solocron.stores.paging import read_held, read_jobs
from solocron.views import RunView

__all__ = ["RunCursor", "RunListing", "RunPage", "WantedRuns"]

_MOST = 10_000
_SCAN = 20_000
_PAGE = 500
"""Runs that are read at once where all are wanted."""


@dataclass(frozen=True, slots=True)
class RunCursor:
    """Place of a run in the listing: that of its record, or of its claim while it runs."""

    place: RecordKey
    running: bool = False

    def __str__(self) -> str:
        at, run, attempt = self.place
        return f"{'running/' if self.running else ''}{iso(at)}/{attempt}/{run}"

    @classmethod
    def parse(cls, text: str) -> RunCursor:
        """Read what `str` wrote; raise ValueError for anything else."""
        rest = text.removeprefix("running/")
        at, attempt, run = rest.split("/", 2)
        moment = datetime.fromisoformat(at)
        if moment.utcoffset() is None or not run:
            raise ValueError(text)
        return cls((to_us(moment), run, int(attempt)), running=rest != text)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRuns:
    """Which runs are wanted. An instant is compared with the end of a run, and for one that runs with now."""

    job: str | None = None
    statuses: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    node: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        for what, given, known in (("status", self.statuses, Status), ("origin", self.origins, Origin)):
            for one in sorted(given):
                if one not in set(known):
                    hint = did_you_mean(one, known, f"choose from {', '.join(known)}.")
                    raise InvalidError(f"{what} {one!r:.40} is not known; {hint}")
        for name, moment in (("since", self.since), ("until", self.until)):
            if moment is not None:
                check_instant(name, moment, undone="nothing was read")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise InvalidError(f"no run can be both since {_utc(self.since)} and before {_utc(self.until)}.")

    def finds_open(self, view: RunView) -> bool:
        """Return whether an attempt that runs, or that a carrier has, is wanted, but for the instants."""
        return (
            (not self.statuses or view.status in self.statuses)
            and (not self.origins or view.origin in self.origins)
            and self.node in (None, view.node)
        )


@dataclass(frozen=True, slots=True)
class RunPage:
    """Runs, and where the listing goes on."""

    runs: tuple[RunView, ...]
    next: RunCursor | None = None
    """Where the next page begins; None if there is nothing more."""
    looked_back_to: datetime | None = None
    """If the search was broken off before the page was full: how far back it came. What follows is on the next."""


class RunListing:
    """Pages of runs, and all of them one after the other."""

    def __init__(self, documents: JobDocuments, lookup: RunLookup) -> None:
        self._documents = documents
        self._lookup = lookup
        self._store = documents.store

    def page(
        self, wanted: WantedRuns, *, limit: int = 50, before: RunCursor | None = None, scan: int = _SCAN
    ) -> RunPage:
        """Return at most `limit` runs after the place `before`, the `next` of the page before.

        Of what no index answers, `scan` records are looked at.
        """
        if not 1 <= limit <= _MOST:
            raise InvalidError(f"limit={limit}: give a whole number from 1 to {_MOST}.")
        held: list[RunView] = []
        known = True
        if before is None or before.running:
            # The documents are read before the log: a run that ends in between is found by its record.
            docs = read_held(self._store) if wanted.job is None else read_jobs(self._store, (wanted.job,))
            known = wanted.job is None or bool(docs)
            if self._is_open(wanted):
                views: list[RunView] = [*self._lookup.running(docs), *offered_views(docs)]
                held = sorted(filter(wanted.finds_open, views), key=_place, reverse=True)
        if before is not None:
            held = [view for view in held if _place(view) < before.place]
        found = held[:limit]
        if len(held) >= limit:
            return RunPage(tuple(found), RunCursor(_place(found[-1]), running=True))
        place = None if before is None or before.running else before.place
        log = self._ended(wanted, limit - len(found), place, scan)
        if not known and not log.runs:
            self._must_exist(wanted.job or "")
        ended = {(view.run, view.attempt) for view in log.runs}
        running = [view for view in found if (view.run, view.attempt) not in ended]
        return RunPage((*running, *log.runs), log.next, log.looked_back_to)

    def newest(self, jobs: Sequence[str], limit: int) -> dict[str, tuple[RunView, ...]]:
        """Return the newest runs of each of these jobs, those first that run or wait in a queue.

        One call for the documents and one for the log, however many jobs there are. Sessions are not read, so leases
        and progress are unknown.
        """
        docs = read_jobs(self._store, jobs)
        log, found = self._store.newest(jobs, limit), dict[str, tuple[RunView, ...]]()
        views = defaultdict[str, list[RunView]](list)
        for view in (*running_views(docs, (), 0), *offered_views(docs)):
            views[view.job].append(view)
        for job in jobs:
            ended = [RunView.of(record) for record in log.get(job, ())]
            known = {(view.run, view.attempt) for view in ended}
            now = [view for view in views[job] if (view.run, view.attempt) not in known]
            found[job] = (*now, *ended)[:limit]
        return found

    def every(self, wanted: WantedRuns, *, before: RunCursor | None = None) -> Iterator[tuple[RunView, ...]]:
        """Yield all runs in pages; only one page is in memory."""
        while True:
            page = self.page(wanted, limit=_PAGE, before=before)
            yield page.runs
            if page.next is None:
                return
            before = page.next

    def _is_open(self, wanted: WantedRuns) -> bool:
        """Return whether the present is within the instants that are wanted."""
        if wanted.since is None and wanted.until is None:
            return True
        now = from_us(self._store.clock())
        return (wanted.since is None or wanted.since <= now) and (wanted.until is None or now < wanted.until)

    def _ended(self, wanted: WantedRuns, limit: int, before: RecordKey | None, scan: int) -> RunPage:
        statuses = wanted.statuses & ENDED
        if wanted.statuses and not statuses:
            return RunPage(())
        query = Query(
            job=wanted.job,
            statuses=frozenset(statuses),
            origins=wanted.origins,
            node=wanted.node,
            since=None if wanted.since is None else to_us(wanted.since),
            until=None if wanted.until is None else to_us(wanted.until),
            before=before,
            limit=limit + 1,  # one more tells whether a next page is worth asking for
            scan=scan,
        )
        page = self._store.history(query)
        runs = tuple(map(RunView.of, page.records[:limit]))
        if len(page.records) > limit:
            return RunPage(runs, RunCursor(key_of(page.records[limit - 1])))
        if page.next is None or page.looked_back_to is None:
            return RunPage(runs)
        return RunPage(runs, RunCursor(page.next), from_us(page.looked_back_to))

    def _must_exist(self, job: str) -> None:
        """Raise if there is no such job. One that was removed is still on record."""
        if not self._store.history(Query(job=job, limit=1)).records:
            self._documents.get(job)


def _place(view: RunView) -> RecordKey:
    """Return the place of a running attempt among the others."""
    return to_us(view.claimed_at or view.slot), view.run, view.attempt


def _utc(moment: datetime) -> str:
    return iso(to_us(moment))
