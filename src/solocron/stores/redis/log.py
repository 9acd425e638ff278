"""The log in Redis: a hash per run, sorted sets per status and per job by the time of recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import nlargest

from solocron.model.documents.run import ENDED, Record, Status
from solocron.stores.contract import Query
from solocron.stores.redis.caller import Caller
from solocron.stores.redis.records import member_of, record_of

__all__ = ["Log"]

_PAGE = 500


class Log:
    """Reads and prunes; records are written by the commit that they belong to."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def history(self, query: Query) -> tuple[Record, ...]:
        """Newest first, by (recorded_at, run, attempt)."""
        if query.limit <= 0:
            return ()
        found = [record for record in self._candidates(query) if _asked_for(query, record)]
        # Several pages of a log that grows meanwhile may show a record twice.
        order = nlargest(query.limit, set(found), key=lambda record: (record.recorded_at, record.run, record.attempt))
        return tuple(order)

    def tally(self, since: int) -> Mapping[str, int]:
        counts = self._caller.run("tally", (str(since), *Status))
        return {status.value: count for status, count in zip(Status, counts, strict=True) if count}

    def prune(self, before: int, limit: int) -> int:
        self._caller.count("commit")
        return int(self._caller.run("prune", (str(before), str(limit), *sorted(ENDED))))

    def _candidates(self, query: Query) -> Iterator[Record]:
        """Records of the narrowest index, enough of each source that the newest of all are among them."""
        if query.run is not None:
            yield from self._attempts(query.run)
        elif query.job is not None:
            yield from self._source(query, [f"log:{query.job}"])
        elif query.limit <= _PAGE:
            # One call for all: each gives its newest, and so the newest of all are there.
            yield from self._page(query, [f"status:{status}" for status in query.statuses or Status], 0, query.limit)
        else:
            for status in query.statuses or Status:
                yield from self._source(query, [f"status:{status}"])

    def _source(self, query: Query, source: list[str]) -> Iterator[Record]:
        """One sorted set from its newest record on, until as many were found as are asked for."""
        offset = found = 0
        size = _PAGE if query.job is not None and query.statuses else min(query.limit, _PAGE)
        while found < query.limit:
            page = self._page(query, source, offset, size)
            yield from page
            if len(page) < size:
                return
            offset += size
            found += sum(_asked_for(query, record) for record in page)

    def _page(self, query: Query, sources: list[str], offset: int, size: int) -> list[Record]:
        high = "+inf" if query.until is None else f"({query.until}"
        low = "-inf" if query.since is None else str(query.since)
        flat = self._caller.run("history", (high, low, str(offset), str(size), *sources))
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return [record_of(member.decode(), text.decode()) for member, text in pairs if text]

    def _attempts(self, run: str) -> list[Record]:
        """Every attempt of a run: 0 (did not run) and 1 by name, the further ones from their set."""
        further = self._caller.command("SMEMBERS", self._caller.key(f"attempts:{run}"))
        members = [member_of(run, attempt) for attempt in (0, 1, *map(int, further))]
        texts = self._caller.command("MGET", *(self._caller.key(f"run:{member}") for member in members))
        return [record_of(member, text.decode()) for member, text in zip(members, texts, strict=True) if text]


def _asked_for(query: Query, record: Record) -> bool:
    return (
        query.job in (None, record.job)
        and query.run in (None, record.run)
        and (not query.statuses or record.status in query.statuses)
        and (query.since is None or record.recorded_at >= query.since)
        and (query.until is None or record.recorded_at < query.until)
    )
