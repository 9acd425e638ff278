"""Read-side helpers for rerun and backfill: recorded slots, failed slots, backfills in progress."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from solocron.client.instants import check_instant
from solocron.clock import from_us, iso, to_us
from solocron.errors import InvalidError, NotFoundError
from solocron.model.documents.job import Hold, Job, WaitingRange, WaitingRun
from solocron.model.documents.run import BAD, GOOD, Origin, Record, key_of, run_id
from solocron.model.policy import QUEUE_LIMIT, parse_rate, whole
from solocron.model.timetable import Timetable
from solocron.model.transitions import backfill
from solocron.stores.contract import Query, Store
from solocron.views import BackfillView

__all__ = [
    "backfill_view",
    "check_range",
    "failed_slots",
    "reading_of",
    "records_since",
    "spans_to_run",
    "under_way",
]

PAGE = 1_000
PAGES = 100
PIECES = 200
"""Maximum number of pieces of one backfill: each is an entry of the job's document."""


def records_since(store: Store, job: str, since: int, statuses: frozenset[str] = frozenset()) -> Iterator[Record]:
    """Yield the records of a job since then, newest first; raise if there are more than `PAGES` pages."""
    query = Query(job=job, statuses=statuses, since=since, limit=PAGE)
    for _ in range(PAGES):
        page = store.history(query)
        yield from page.records
        if page.next is None:
            return
        query = replace(query, before=page.next)
    raise InvalidError(
        f"{job} has more than {PAGE * PAGES} records since {iso(since)}; nothing was asked for. Narrow it."
    )


def reading_of(store: Store, job: Job, slot: datetime) -> tuple[int, str]:
    """Return a recorded slot and the reading in its key; raise if the slot is not on record."""
    check_instant("slot", slot, undone="nothing was asked for")
    at = to_us(slot)
    run = run_id(job.name, job.incarnation, Origin.SCHEDULE, at)
    begun: list[Hold | WaitingRun] = [*job.active, *job.waiting_runs]
    for one in begun:
        if one.slot == at and one.origin is not Origin.TRIGGER:  # it runs or waits: the document before the log
            return at, _reading(key_of(job.name, one.origin, at, one.request))
    found = store.history(Query(run=run, limit=1)).records
    if found:
        return at, _reading(found[0].key)
    for record in records_since(store, job.name, at):
        first = record.slot if record.first is None else record.first
        if record.origin is Origin.TRIGGER or not first <= at <= record.slot:
            continue
        if record.slot == at or first == at:
            return at, _reading(record.key) if record.count == 1 else ""
        if record.count > 1 and record.attempt == 0:
            return at, ""
    raise NotFoundError(
        f"{job.name} has no slot at {iso(at)} on record, so nothing was asked for; `solocron runs {job.name}` lists "
        "them, and `solocron backfill` runs what the schedule has in a range."
    )


def _reading(key: str) -> str:
    """Return the part of the key after the instant, which tells apart slots that fall on one instant."""
    return key.partition("|")[2].partition("#")[0]


def failed_slots(store: Store, job: Job, since: datetime) -> list[tuple[int, str]]:
    """Return the slots whose latest record since then is a failure, oldest first; a later success clears a slot."""
    check_instant("failed_since", since, undone="nothing was asked for")
    last: dict[str, Record] = {}
    for record in records_since(store, job.name, to_us(since)):
        if record.origin is not Origin.TRIGGER and record.count == 1:
            known = last.get(record.key)
            if known is None or _order(record) > _order(known):
                last[record.key] = record
    begun: list[Hold | WaitingRun] = [*job.active, *job.waiting_runs]
    busy = {one.slot for one in begun if one.origin is not Origin.TRIGGER}  # running, or waiting for its retry
    found = {
        (record.slot, _reading(record.key))
        for record in last.values()
        if record.status in BAD
        and record.slot not in busy
        and not any(s.first <= record.slot <= s.last for s in job.waiting_ranges)
    }
    if len(found) > QUEUE_LIMIT:
        raise InvalidError(
            f"{len(found)} slots of {job.name} failed, more than {QUEUE_LIMIT}; nothing was asked for. Narrow it."
        )
    return sorted(found)


def _order(record: Record) -> tuple[int, bool, int]:
    """Sort key for the records of one slot: a rerun or backfill comes after the run that it repeats."""
    return record.recorded_at, record.origin is not Origin.SCHEDULE, record.attempt


def check_range(
    start: datetime, end: datetime, limit: int | None, rate: str | None, now: int
) -> tuple[int, int, int | None]:
    """Check a range of the past and a rate; return them in microseconds."""
    for name, moment in (("start", start), ("end", end)):
        check_instant(name, moment, undone="nothing was asked for")
    if end <= start:
        raise InvalidError(f"end={end} is not after start={start}; nothing was asked for.")
    if to_us(end) > now:
        raise InvalidError(f"end={end} is in the future, where the schedule runs by itself; nothing was asked for.")
    if limit is not None and (not whole(limit) or limit < 1):
        raise InvalidError(f"limit={limit!r}: give a whole number from 1 up. Nothing was asked for.")
    return to_us(start), to_us(end), None if rate is None else parse_rate(rate, what="backfill(rate=)")


def backfill_view(job: Job, waiting_range: WaitingRange, *, dry_run: bool = False) -> BackfillView:
    request = waiting_range.request or ""
    begun: list[Hold | WaitingRun] = [*job.active, *job.waiting_runs]
    mine = [one for one in begun if one.origin is Origin.BACKFILL and one.request == request]
    total = waiting_range.total or waiting_range.count
    return BackfillView(
        id=None if dry_run else backfill.backfill_id(job, request),
        job=job.name,
        first=from_us(waiting_range.first),
        last=from_us(waiting_range.last),
        total=total,
        waiting=waiting_range.count,
        running=len(mine),
        done=total - waiting_range.count - len(mine),
        rate=waiting_range.pace / 1_000_000 if waiting_range.pace else None,
        asked_by=waiting_range.asked_by,
        note=waiting_range.note,
    )


def under_way(job: Job) -> list[BackfillView]:
    """Return the backfills of a job that still have slots to start."""
    of_request: dict[str | None, list[WaitingRange]] = {}
    for one in job.waiting_ranges:
        if one.origin is Origin.BACKFILL:
            of_request.setdefault(one.request, []).append(one)
    return [backfill_view(job, backfill.summary_of(ranges)) for ranges in of_request.values()]


def spans_to_run(
    store: Store, job: Job, slots: Timetable, start: int, end: int, *, only: str, limit: int | None
) -> list[tuple[int, int]]:
    """Return the slots of a range that did not run ("missed"), or did not succeed ("not_well"), as spans of neighbours.

    What is not on record counts as not run. What runs or waits now is left out.
    """
    begun: list[Hold | WaitingRun] = [*job.active, *job.waiting_runs]
    done = {one.slot for one in begun if one.origin is not Origin.TRIGGER}
    for record in records_since(store, job.name, start):
        well = record.status in GOOD if only == "not_well" else record.attempt > 0
        if well and record.origin is not Origin.TRIGGER:
            done.add(record.slot)
    until = min(end - 1, slots.decided_until(job.cursor, job.nominal))
    if slots.count(start - 1, until) > backfill.MOST:
        raise InvalidError(f"{job.name} has more than {backfill.MOST} slots there; nothing was asked for. Narrow it.")
    spans: list[tuple[int, int]] = []
    slot, together = slots.after(start - 1), False
    wanted = list[tuple[int, bool]]()
    while slot is not None and slot <= until:
        waits = any(s.first <= slot <= s.last for s in job.waiting_ranges)
        wanted.append((slot, slot not in done and not waits))
        slot = slots.after(slot)
    left = sum(is_wanted for _, is_wanted in wanted)
    for at, is_wanted in wanted:
        left -= is_wanted
        if not is_wanted or (limit is not None and left >= limit):
            together = False
        elif together:
            spans[-1] = (spans[-1][0], at)
        else:
            spans.append((at, at))
            together = True
    if len(spans) > PIECES:
        raise InvalidError(
            f"the slots of {job.name} to run lie in {len(spans)} pieces, more than {PIECES}; nothing was asked for. "
            'Narrow the range, or run all of it with only="all".'
        )
    return spans
