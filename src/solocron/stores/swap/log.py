"""The log on a key store: read newest first by its index keys, counted from them, pruned oldest first.

Records that are still packed are read from their parcels, before the keys of the log: what is unpacked in between is
then seen twice and taken once, and never missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import merge, nlargest, nsmallest
from itertools import islice

from solocron.errors import StoreUnavailable
from solocron.model.documents.run import ENDED, Origin, Record, Status
from solocron.stores.contract import Page, Query, RecordKey
from solocron.stores.log import density_within, key_of, page_within, parts_within
from solocron.stores.swap.calls import PAGE, KeyCalls
from solocron.stores.swap.key_store import Lost, Span
from solocron.stores.swap.layout import instant, log_keys, quoted, record_at, run_key, run_of
from solocron.stores.swap.parcels import PARCELS, unpack_all
from solocron.stores.swap.portions import records_in
from solocron.stores.swap.selecting import pages_of

__all__ = ["SwapLog"]

_AT_ONCE = 100
"""Records that one fetch reads by name."""


class SwapLog:
    """Reads, counts and prunes; records are written by the commit that they belong to."""

    def __init__(self, calls: KeyCalls) -> None:
        self._calls = calls

    # --- reading

    def history(self, query: Query) -> Page:
        """Return records newest first, by (recorded_at, run, attempt)."""
        if query.limit <= 0:
            return Page(())
        packed = self._packed()
        if query.named:
            return page_within(query, self._of_runs(dict.fromkeys(query.named), packed))
        if query.group is not None:
            prefix = f"run/{query.group}#"
            return page_within(query, self._in(Span(prefix, f"{prefix[:-1]}$"), packed))
        found: list[Record] = []
        for looked, record in enumerate(self._newest(query, packed), 1):
            if query.finds(record):
                found.append(record)
            if len(found) == query.limit:
                return Page(tuple(found), key_of(record))
            if looked == query.most:
                return Page(tuple(found), key_of(record), record.recorded_at)
        return Page(tuple(found))

    def newest(self, jobs: Sequence[str], limit: int) -> Mapping[str, tuple[Record, ...]]:
        """Return the newest records of each job: the indexes of many jobs in one fetch, then the records by name."""
        packed = self._packed()
        places = {job: [key_of(one) for one in packed.values() if one.job == job] for job in jobs}
        for i in range(0, len(jobs), _AT_ONCE):
            some = jobs[i : i + _AT_ONCE]
            sources = [f"log/{quoted(job)}/" for job in some]
            spans = [Span(source, f"{source[:-1]}0", limit, reverse=True, bare=True) for source in sources]
            for job, page in zip(some, self._calls.fetch((), spans).pages, strict=True):
                places[job] += [_place(item.key) for item in page]
        wanted = {job: nlargest(limit, set(found)) for job, found in places.items()}
        keys = [run_key(run, attempt) for found in wanted.values() for _, run, attempt in found]
        records = dict(packed)
        for i in range(0, len(keys), PAGE):
            there = self._calls.fetch(keys[i : i + PAGE]).items
            records |= {key: record_at(key, item.value) for key, item in there.items()}
        whole = {
            job: tuple(records[key] for _, run, attempt in each if (key := run_key(run, attempt)) in records)
            for job, each in wanted.items()
        }
        return {job: each for job, each in whole.items() if each}

    def _packed(self) -> dict[str, Record]:
        """Return the records that are still in parcels, by their `run/` keys."""
        found: dict[str, Record] = {}
        for page in pages_of(self._calls, Span.below(PARCELS)):
            for item in page:
                found |= records_in(item.value)
        return found

    def _of_runs(self, runs: Iterable[str], packed: Mapping[str, Record]) -> list[Record]:
        # A pair sorts right after the run itself, so that the span holds its attempts and nothing else.
        spans = [Span(run_key(run, 0), run_key(run, 99_999_999)) for run in runs]
        pages = self._calls.fetch((), spans).pages
        return _once((record_at(item.key, item.value) for page in pages for item in page), packed)

    def _in(self, span: Span, packed: Mapping[str, Record]) -> list[Record]:
        return _once((record_at(item.key, item.value) for page in pages_of(self._calls, span) for item in page), packed)

    def _newest(self, query: Query, packed: Mapping[str, Record]) -> Iterator[Record]:
        """Yield the records that the index can find, newest first; conditions without an index are the caller's."""
        size = PAGE if query.filters or (query.job is not None and query.statuses) else min(query.limit, PAGE)
        sources = [f"st/{status}/" for status in sorted(query.statuses or ENDED)]
        if query.job is not None:
            sources = [f"log/{quoted(query.job)}/"]
        plain = replace(query, origins=frozenset(), node=None, session=None)
        own = sorted((key_of(record) for record in packed.values() if plain.finds(record)), reverse=True)
        walks = [own, *(self._walk(query, source, size) for source in sources)]
        places = self._without_repeats(merge(*walks, reverse=True))
        while some := list(islice(places, _AT_ONCE if size > _AT_ONCE else size)):
            keys = [run_key(run, attempt) for _, run, attempt in some]
            there = self._calls.fetch(keys).items
            for key in keys:
                if key in there:
                    yield record_at(key, there[key].value)
                elif key in packed:
                    yield packed[key]

    def _without_repeats(self, places: Iterable[RecordKey]) -> Iterator[RecordKey]:
        last = None
        for place in places:
            if place != last:
                yield place
            last = place

    def _walk(self, query: Query, source: str, size: int) -> Iterator[RecordKey]:
        """Yield places of one index, newest first, from where the page before ended."""
        high = f"{source[:-1]}0" if query.until is None else f"{source}{instant(query.until)}"
        if query.before is not None:
            at, run, attempt = query.before
            high = min(high, f"{source}{instant(at)}/{run_key(run, attempt).removeprefix('run/')}")
        low = source if query.since is None else f"{source}{instant(query.since)}"
        while True:
            page = self._calls.fetch((), (Span(low, high, size, reverse=True, bare=True),)).pages[0]
            for item in page:
                yield _place(item.key)
            if len(page) < size:
                return
            high, size = page[-1].key, PAGE

    # --- counting

    def tally_by_time(self, span: Query, bucket: int) -> Mapping[int, Mapping[str, int]]:
        """Count each part of a span by status."""
        return parts_within(span, bucket, self._counted(span))

    def density(self, span: Query, bucket: int) -> Mapping[tuple[int, str | None], Mapping[str, int]]:
        """Count each part of a span by node and status; the records themselves are read."""
        return density_within(span, bucket, self._newest(replace(span, limit=PAGE), self._packed()))

    def _counted(self, span: Query) -> Iterator[Record]:
        """Yield records with the few values that index keys have: place, job, status and count."""
        packed, since, until = self._packed(), instant(span.since or 0), instant(span.until or 0)
        yield from (record for record in packed.values() if span.finds(record))
        sources = [f"st/{status}/" for status in sorted(ENDED)]
        if span.job is not None:
            sources = [f"log/{quoted(span.job)}/"]
        for source in sources:
            for page in pages_of(self._calls, Span(f"{source}{since}", f"{source}{until}")):
                for item in page:
                    at, run, attempt = _place(item.key)
                    if run_key(run, attempt) in packed:
                        continue
                    status, _, count = item.value.rpartition(" ")
                    yield _sample(at, run, attempt, span.job or "", status or source.split("/")[1], int(count))

    # --- pruning

    def prune(self, before: int, limit: int) -> int:
        """Remove up to `limit` records from before then, the oldest first; return how many."""
        unpack_all(self._calls)
        spans = [Span(f"st/{status}/", f"st/{status}/{instant(before)}", limit, bare=True) for status in sorted(ENDED)]
        pages = self._calls.fetch((), spans).pages
        places = nsmallest(limit, (_place(item.key) for page in pages for item in page))
        keys = [run_key(run, attempt) for _, run, attempt in places]
        size = max(1, self._calls.keys.limits.keys // 3)
        for start in range(0, len(keys), size):
            there = self._calls.fetch(keys[start : start + size]).items
            gone = [key for item in there.values() for key in log_keys(record_at(item.key, item.value))]
            try:
                if gone:
                    self._calls.commit({}, dict.fromkeys(gone))
            except Lost as error:
                raise StoreUnavailable(f"no reply while old records were removed ({error}); try again") from None
        return len(keys)


def _place(key: str) -> RecordKey:
    """Return the place in the log of an index key `.../<recorded>/<run>·<attempt>`."""
    _, _, at, member = key.split("/", 3)
    return (int(at), *run_of(member))


def _sample(at: int, run: str, attempt: int, job: str, status: str, count: int) -> Record:
    """Return a record of which only what is counted is true."""
    return Record(
        run=run, job=job, attempt=attempt, slot=0, origin=Origin.SCHEDULE, status=Status(status), key="",
        recorded_at=at, count=count,
    )  # fmt: skip


def _once(found: Iterable[Record], packed: Mapping[str, Record]) -> list[Record]:
    records = {run_key(record.run, record.attempt): record for record in found}
    return list(({**packed} | records).values())
