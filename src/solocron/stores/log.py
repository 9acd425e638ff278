"""Answers about the log that need no database: a page of records that are at hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from solocron.model.documents.run import Record
from solocron.stores.contract import Page, Query, RecordKey, Store

__all__ = ["is_recorded", "key_of", "page_within"]


def key_of(record: Record) -> RecordKey:
    """The place of a record in the log."""
    return record.recorded_at, record.run, record.attempt


def is_recorded(store: Store, run: str) -> bool:
    """Whether an attempt of a run, or of a shard of it, has ended. Read the job's document before: it has the rest."""
    return any(store.history(query).records for query in (Query(run=run, limit=1), Query(group=run, limit=1)))


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
