"""Read a span of a namespace for a picture of it: who ran what, what was taken over or refused, and what comes next."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from solocron.client.columns import Columns
from solocron.client.instants import check_instant
from solocron.client.job_documents import JobDocuments
from solocron.client.run_lookup import offered_views, running_views
from solocron.clock import SECOND, from_us, to_us
from solocron.errors import InvalidError
from solocron.model.documents.scoped_pause import KeptBack, kept_back
from solocron.stores.contract import Query
from solocron.stores.log import DENSITY_SPAN
from solocron.stores.paging import read_held, read_jobs, sessions_since
from solocron.views import DenseView, NodeView, RunView, TimelineView, ToComeView
from solocron.views.timeline import lanes_of, takeovers_of

__all__ = ["ATTEMPTS", "LaneKind", "Timeline"]

LaneKind = Literal["node", "job"]

ATTEMPTS = 2_000
"""Attempts that one picture lists at most."""
_LONGEST = timedelta(days=7)
_ACROSS = 6 * 3_600 * SECOND
"""How long after the end of a past span an attempt may end that is still shown in it."""
_EDGE = 200
_NEXT_JOBS = 100
_NEXT_SLOTS = 200
_FIRST = 10
_BY_NODE = 6 * DENSITY_SPAN
"""The longest part that is counted by node; a longer one is counted for all nodes together."""


class Timeline:
    """Spans of a namespace."""

    def __init__(self, documents: JobDocuments) -> None:
        self._documents = documents
        self._store = documents.store
        self._columns = Columns(documents.store)

    def timeline(
        self, start: datetime, end: datetime, *, lanes: LaneKind = "node", limit: int = ATTEMPTS
    ) -> TimelineView:
        """Return what happened from `start` to `end`, at most 7 days, with the newest `limit` attempts.

        Older ones are counted. Past the present there are the slots to come.
        """
        for name, moment in (("start", start), ("end", end)):
            check_instant(name, moment, undone="nothing was read")
        if end <= start or end - start > _LONGEST:
            raise InvalidError(f"the span from {start} to {end} is not one of up to 7 days; nothing was read.")
        if lanes not in ("node", "job"):
            raise InvalidError(f"lanes={lanes!r:.40}: choose 'node' or 'job'; nothing was read.")
        if not 1 <= limit <= ATTEMPTS:
            raise InvalidError(f"limit={limit}: give a whole number from 1 to {ATTEMPTS}; nothing was read.")
        # What is held is read before the log: an attempt that ends in between is found by its record.
        jobs, now = read_held(self._store), self._store.clock()
        sessions = sessions_since(self._store, to_us(start))
        held = running_views(jobs, sessions, now)
        ended, oldest = self._ended(to_us(start), min(to_us(end), now + 1), limit, now)
        known = {(view.run, view.attempt) for view in ended}
        open_now: list[RunView] = [*held, *offered_views(jobs)]
        running = [view for view in open_now if (view.run, view.attempt) not in known and _begun(view) < end]
        attempts = [*running, *ended]
        nodes = [NodeView.of(one, now=now) for one in sessions if from_us(one.started_at) < end and one.pools]
        takeovers = takeovers_of(attempts)
        return TimelineView(
            start=start,
            end=end,
            now=from_us(now),
            lanes=lanes_of(lanes, nodes, attempts, takeovers),
            takeovers=takeovers,
            to_come=tuple(self._slots_until(now, to_us(end))),
            dense=tuple(self._dense(to_us(start), oldest, now)),
        )

    def _ended(self, start: int, end: int, limit: int, now: int) -> tuple[list[RunView], int]:
        """Return the attempts of the span that have ended, the newest first, and from when on these are all.

        No status is asked for, though slots that did not run are no attempts: a filter would look at 20,000 records.
        """
        page = self._store.history(Query(since=start, until=end, limit=limit))
        found = [RunView.of(record) for record in page.records if record.attempt]
        if end <= now:
            across = self._store.history(Query(since=end, until=end + _ACROSS, limit=_EDGE)).records
            views = [RunView.of(record) for record in across if record.attempt]
            found = [*(view for view in views if to_us(_begun(view)) < end), *found]
        return found, start if page.next is None else page.records[-1].recorded_at

    def to_come(self, end: datetime) -> list[ToComeView]:
        """Return the slots from now to an instant, the first of them; if there is none, the first ones after it."""
        now, until = self._store.clock(), to_us(end)
        return self._slots_until(now, until) or self._slots_until(now, None)

    def dense(self, start: datetime, end: datetime) -> tuple[DenseView, ...]:
        """Return how many attempts ended in each part of a span, by node if the span is short."""
        return tuple(self._dense(to_us(start), to_us(end), self._store.clock()))

    def _slots_until(self, now: int, until: int | None) -> list[ToComeView]:
        """Return the first slots after now of the jobs that are due first; one of each if there is no end."""
        if until is not None and until <= now:
            return []
        names = [name for _, name in self._store.due_times(_NEXT_JOBS if until else _FIRST, until=until)]
        jobs = read_jobs(self._store, names) if names else []
        self._documents.calendars.learn(jobs)
        pauses = self._documents.pauses() if jobs else ()
        found: list[tuple[int, str]] = []
        for job in jobs:
            if not job.definition.enabled or job.paused is not None:
                continue
            if kept_back(pauses, job, now=now) is not KeptBack.NOTHING:
                continue
            try:
                timetable = self._documents.resolve(job.definition.schedule)
            except InvalidError:  # this release, or its zone data, cannot read the schedule
                continue
            slot = timetable.after(now)
            while slot is not None and (until is None or slot < until) and len(found) < _NEXT_SLOTS * 10:
                found.append((slot, job.name))
                slot = None if until is None else timetable.after(slot)
        return [ToComeView(job=name, slot=from_us(slot)) for slot, name in sorted(found)[:_NEXT_SLOTS]]

    def _dense(self, start: int, end: int, now: int) -> list[DenseView]:
        """Count what is too much to be listed, in columns: by node if the part is short."""
        if end <= start:
            return []
        return [
            DenseView(node=node, start=from_us(max(at, start)), end=from_us(until), counts=dict(counts))
            for at, until, nodes in self._columns.counts(start, end, now, by_node=end - start <= _BY_NODE)
            for node, counts in sorted(nodes.items(), key=lambda one: one[0] or "")
        ]


def _begun(view: RunView) -> datetime:
    return view.claimed_at or view.slot
