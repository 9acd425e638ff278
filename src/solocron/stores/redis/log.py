"""The log in Redis: a text per record, sorted sets per status and per job by the time of recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import merge

from solocron.model.documents.run import ENDED, Record
from solocron.stores.contract import Page, Query, RecordKey
from solocron.stores.log import key_of, page_within, parts_within
from solocron.stores.record_text import may_be_found, record_from, recorded_at
from solocron.stores.redis.caller import Caller
from solocron.stores.redis.records import member_of, record_of

__all__ = ["Log"]

_PAGE = 200
"""Records per call: a script keeps the server from everything else."""
_RECORDS = 1_000
"""Records per call where those of several jobs are read, which are found without a search."""
_PARTS = 50
"""Parts of a span that are counted per call, for the same reason."""


class Log:
    """Reads and prunes; records are written by the commit that they belong to."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def history(self, query: Query) -> Page:
        """Newest first, by (recorded_at, run, attempt). What no index answers is filtered here, page by page."""
        if query.limit <= 0:
            return Page(())
        if query.named:
            return page_within(query, [record for run in dict.fromkeys(query.named) for record in self._attempts(run)])
        if query.group is not None:
            runs = self._caller.command("SMEMBERS", self._caller.key(f"shards:{query.group}"))
            return page_within(query, [record for run in runs for record in self._attempts(run.decode())])
        sources = [f"status:{status}" for status in sorted(query.statuses or ENDED)]
        if query.job is not None:
            sources = [f"log:{query.job}"]
        return self._newest(query, sources)

    def newest(self, jobs: Sequence[str], limit: int) -> Mapping[str, tuple[Record, ...]]:
        """Read the newest of several jobs in one call, as many jobs as a call may read records for."""
        found, at_once = dict[str, tuple[Record, ...]](), max(1, _RECORDS // limit)
        for i in range(0, len(jobs), at_once):
            some = jobs[i : i + at_once]
            pages = self._pages(Query(), [f"log:{job}" for job in some], 0, limit)
            for job, page in zip(some, pages, strict=True):
                records = [record_of(member, text) for member, text in page if text]  # else pruned in this moment
                found |= {job: tuple(sorted(records, key=key_of, reverse=True))} if records else {}
        return found

    def tally_by_time(self, span: Query, bucket: int) -> Mapping[int, Mapping[str, int]]:
        """Count each part of a span by status from the sorted sets; of one job, by looking at its records."""
        if span.job is not None:
            return parts_within(span, bucket, self.records(span))
        since, until = span.since or 0, span.until or 0
        found, begins = dict[int, Mapping[str, int]](), range(since, until, bucket)
        for i in range(0, len(begins), _PARTS):
            some = begins[i : i + _PARTS]
            counts = self._counts([(str(begin), f"({min(begin + bucket, until)}") for begin in some])
            found |= {begin: each for begin, each in zip(some, counts, strict=True) if each}
        return found

    def records(self, span: Query) -> Iterator[Record]:
        """Yield every record of a span, newest first, a page at a time."""
        before: RecordKey | None = None
        while True:
            page = self.history(replace(span, before=before, limit=_PAGE))
            yield from page.records
            before = page.next
            if before is None:
                return

    def _counts(self, spans: list[tuple[str, str]]) -> list[dict[str, int]]:
        """Count several spans in one call."""
        statuses = sorted(ENDED)
        counts = iter(
            self._caller.run("tally", (str(len(spans)), *(word for span in spans for word in span), *statuses))
        )
        return [{status: count for status in statuses if (count := int(next(counts)))} for _ in spans]

    def prune(self, before: int, limit: int) -> int:
        self._caller.count("commit")
        return int(self._caller.run("prune", (str(before), str(limit), *sorted(ENDED))))

    def _newest(self, query: Query, sources: list[str]) -> Page:
        """Walk down the sorted sets together until `limit` records are found or `scan` were looked at."""
        size = _PAGE if query.filters or (query.job is not None and query.statuses) else min(query.limit, _PAGE)
        pages = self._pages(query, sources, 0, size)
        walks = [self._walk(query, source, page, size) for source, page in zip(sources, pages, strict=True)]
        found: list[Record] = []
        for looked, (key, text) in enumerate(merge(*walks, reverse=True), 1):
            if may_be_found(query, text) and query.finds(record := record_from(key[1], key[2], text)):
                found.append(record)
            if len(found) == query.limit:
                return Page(tuple(found), key)
            if looked == query.most:
                return Page(tuple(found), key, key[0])
        return Page(tuple(found))

    def _walk(
        self, query: Query, source: str, page: list[tuple[str, str]], size: int
    ) -> Iterator[tuple[RecordKey, str]]:
        """One sorted set from its newest record on, or from where the page before ended; `page` is the first part.

        Records of one instant lie in the order of their names.
        """
        offset = 0
        while True:
            for member, text in page:
                if not text:  # pruned in this moment
                    continue
                run, _, attempt = member.rpartition(" ")
                key = recorded_at(text), run, int(attempt)
                if query.before is None or key < query.before:
                    yield key, text
            if len(page) < size:
                return
            offset, size = offset + size, _PAGE
            page = self._pages(query, [source], offset, size)[0]

    def _pages(self, query: Query, sources: list[str], offset: int, size: int) -> list[list[tuple[str, str]]]:
        """One part of each sorted set, in one call: names and texts of records."""
        high = "+inf" if query.until is None else f"({query.until}"
        if query.before is not None and (query.until is None or query.before[0] < query.until):
            high = str(query.before[0])
        low = "-inf" if query.since is None else str(query.since)
        found = self._caller.run("history", (high, low, str(offset), str(size), *sources))
        return [[(m.decode(), t.decode()) for m, t in zip(flat[::2], flat[1::2], strict=True)] for flat in found]

    def _attempts(self, run: str) -> list[Record]:
        """Every attempt of a run: 0 (did not run) and 1 by name, the further ones from their set."""
        further = self._caller.command("SMEMBERS", self._caller.key(f"attempts:{run}"))
        members = [member_of(run, attempt) for attempt in (0, 1, *map(int, further))]
        texts = self._caller.command("MGET", *(self._caller.key(f"run:{member}") for member in members))
        return [record_of(member, text.decode()) for member, text in zip(members, texts, strict=True) if text]
