"""Answers about the log that need no database: a page, or the counts, of records that are at hand."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from solocron.clock import SECOND
from solocron.errors import InvalidError
from solocron.model.documents.run import Record
from solocron.stores.contract import Page, Query, RecordKey, Store

__all__ = [
    *("DENSITY_SPAN", "PARTS", "density_within", "divided"),
    *("is_recorded", "key_of", "newest_by_job", "page_within", "parts_within"),
]

PARTS = 1_000
"""Parts into which one `tally_by_time` divides a span: a month of hours, or half a day of minutes."""
DENSITY_SPAN = 3_600 * SECOND
"""The longest span of a `density`, which looks at every record of it."""

K = TypeVar("K", bound=Hashable)


def key_of(record: Record) -> RecordKey:
    """The place of a record in the log."""
    return record.recorded_at, record.run, record.attempt


def is_recorded(store: Store, run: str) -> bool:
    """Whether an attempt of a run, or of a shard of it, has ended. Read the job's document before: it has the rest."""
    return any(store.history(query).records for query in (Query(run=run, limit=1), Query(group=run, limit=1)))


def newest_by_job(
    history: Callable[[Query], Page], jobs: Iterable[str], limit: int
) -> Mapping[str, tuple[Record, ...]]:
    """Answer `newest` with one query for each job."""
    pages = ((job, history(Query(job=job, limit=limit))) for job in jobs)
    return {job: page.records for job, page in pages if page.records}


def page_within(query: Query, records: Iterable[Record]) -> Page:
    """Answer a query from records among which are all that its index conditions can find."""
    plain = replace(query, origins=frozenset(), node=None, session=None, statuses=frozenset())
    found = sorted((record for record in records if plain.finds(record)), key=key_of, reverse=True)
    if query.before is not None:
        found = [record for record in found if key_of(record) < query.before]
    looked, page = found[: query.most], list[Record]()
    for record in looked if query.limit > 0 else ():
        if query.finds(record):
            page.append(record)
            if len(page) == query.limit:
                return Page(tuple(page), key_of(record))
    if len(looked) < len(found) and looked and query.limit > 0:
        return Page(tuple(page), key_of(looked[-1]), looked[-1].recorded_at)
    return Page(tuple(page))


def parts_within(span: Query, bucket: int, records: Iterable[Record]) -> Mapping[int, Mapping[str, int]]:
    """Answer `tally_by_time` from records among which are all of the span."""
    since = span.since or 0
    return _counted(span, records, lambda record: _part(record, since, bucket))


def density_within(
    span: Query, bucket: int, records: Iterable[Record]
) -> Mapping[tuple[int, str | None], Mapping[str, int]]:
    """Answer `density` from records among which are all of the span."""
    since = span.since or 0
    return _counted(span, records, lambda record: (_part(record, since, bucket), record.node))


def divided(since: int, until: int, bucket: int, *, job: str | None = None, longest: int | None = None) -> Query:
    """Return the span of a count in parts; refuse one that is too large for a single call."""
    if bucket < 1 or until - since > bucket * PARTS:
        raise InvalidError(f"bucket={bucket} divides the span into none or over {PARTS} parts. Nothing was counted.")
    if longest is not None and until - since > longest:
        raise InvalidError(
            f"the span of {(until - since) / SECOND:g} s is too long to count at once; nothing was counted. "
            f"Ask for at most {longest / SECOND:g} s at a time."
        )
    return Query(since=since, until=until, job=job)


def _part(record: Record, since: int, bucket: int) -> int:
    return record.recorded_at - (record.recorded_at - since) % bucket


def _counted(span: Query, records: Iterable[Record], key: Callable[[Record], K]) -> dict[K, dict[str, int]]:
    found: dict[K, dict[str, int]] = {}
    for record in filter(span.finds, records):
        counts = found.setdefault(key(record), {})
        counts[record.status] = counts.get(record.status, 0) + record.count
    return found
