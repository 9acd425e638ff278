"""The log in Redis: a hash per run, sorted sets per status and per job by the time of recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest

from solocron.model.run import ENDED, Record, Status
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
        found: dict[tuple[str, int], Record] = {}
        for records in self._pages(query):
            found |= {(record.run, record.attempt): record for record in records if _asked_for(query, record)}
            if len(found) >= query.limit:
                break
        order = nlargest(
            query.limit, found.values(), key=lambda record: (record.recorded_at, record.run, record.attempt)
        )
        return tuple(order)

    def tally(self, since: int) -> Mapping[str, int]:
        counts = self._caller.run("tally", (str(since), *Status))
        return {status.value: count for status, count in zip(Status, counts, strict=True) if count}

    def prune(self, before: int, limit: int) -> int:
        self._caller.count("commit")
        return int(self._caller.run("prune", (str(before), str(limit), *sorted(ENDED))))

    def _pages(self, query: Query) -> Iterator[list[Record]]:
        """Pages of the narrowest index; each is complete down to its last record."""
        if query.run is not None:
            yield self._attempts(query.run)
            return
        high = "+inf" if query.until is None else f"({query.until}"
        low = "-inf" if query.since is None else str(query.since)
        size = max(query.limit, _PAGE) if query.job is not None and query.statuses else query.limit
        sources = [f"log:{query.job}"] if query.job is not None else [f"status:{s}" for s in query.statuses or Status]
        offset = 0
        while True:
            flat = self._caller.run("history", (high, low, str(offset), str(size), *sources))
            yield [record_of(member.decode(), text.decode()) for member, text in _pairs(flat) if text]
            if len(flat) < 2 * size or query.job is None:
                return
            offset += size

    def _attempts(self, run: str) -> list[Record]:
        """Every attempt of a run: 0 (did not run) and 1 by name, the further ones from their set."""
        further = self._caller.command("SMEMBERS", f"{self._caller.prefix}:attempts:{run}")
        members = [member_of(run, attempt) for attempt in (0, 1, *map(int, further))]
        texts = self._caller.command("MGET", *(f"{self._caller.prefix}:run:{member}" for member in members))
        return [record_of(member, text.decode()) for member, text in zip(members, texts, strict=True) if text]


def _pairs(flat: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _asked_for(query: Query, record: Record) -> bool:
    return (
        query.job in (None, record.job)
        and query.run in (None, record.run)
        and (not query.statuses or record.status in query.statuses)
        and (query.since is None or record.recorded_at >= query.since)
        and (query.until is None or record.recorded_at < query.until)
    )
