"""Counts of records by status, of which closed hours and minutes are counted once.

A record never changes, and its time is that of the store at its commit. So a part that ended a while ago is final: a
service that shows the counts of a day all the time counts only the last minutes again.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from threading import Lock

from solocron.clock import SECOND
from solocron.stores.contract import Store

__all__ = ["HOUR", "HourCounts"]

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
_SETTLED = MINUTE
"""Microseconds after which a part is final: commits become visible a little later than their time."""
_HOURS = 800
_MINUTES = 240
"""Parts that are kept: a month of hours, and the minutes of the hours at the edges of a span."""


class HourCounts:
    """Counts of a namespace. Safe to call from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hours = _ClosedParts(store, HOUR, _HOURS)
        self._minutes = _ClosedParts(store, MINUTE, _MINUTES)

    def total(self, since: int, now: int) -> dict[str, int]:
        """Count the records by status from the minute of `since` on: what begins within a minute is never closed."""
        first, end = _down(since, MINUTE), _down(now - _SETTLED, HOUR)
        begin = _up(first, HOUR)
        counts: Counter[str] = Counter()
        spans: list[Mapping[int, Mapping[str, int]]] = [self._latest(max(first, end), now)]
        if begin < end:
            spans += [self._minutes.counts(first, begin), self._hours.counts(begin, end)]
        elif first < end:
            spans.append(self._minutes.counts(first, end))
        for parts in spans:
            for part in parts.values():
                counts.update(part)
        return {status: count for status, count in counts.items() if count}

    def by_hour(self, since: int, now: int) -> dict[int, Mapping[str, int]]:
        """Count the records since the hour of `since` by hour and status; an hour without records is left out."""
        first = _down(since, HOUR)
        end = max(_down(now - _SETTLED, HOUR), first)
        found: dict[int, Counter[str]] = {}
        for some in (self._hours.counts(first, end), self._latest(end, now)):
            for at, counts in some.items():
                found.setdefault(_down(at, HOUR), Counter()).update(counts)
        return {hour: dict(counts) for hour, counts in sorted(found.items()) if counts}

    def _latest(self, start: int, now: int) -> Mapping[int, Mapping[str, int]]:
        """Count each minute from `start` up to now, in one statement: those that are closed meanwhile with the rest."""
        final = max(_down(now - _SETTLED, MINUTE), start)
        return self._minutes.counts(start, final, until=now + 1)


class _ClosedParts:
    """The counts of parts of one size that are final."""

    def __init__(self, store: Store, size: int, kept: int) -> None:
        self._store = store
        self._size = size
        self._kept = kept
        self._lock = Lock()
        self._known: OrderedDict[int, Mapping[str, int]] = OrderedDict()

    def counts(self, first: int, end: int, *, until: int | None = None) -> dict[int, Mapping[str, int]]:
        """Return the counts of each part before `end`, which are final, and of the open ones from there to `until`.

        All that is not known is counted in one statement.
        """
        wanted = range(first, end, self._size)
        with self._lock:
            found = {at: self._known[at] for at in wanted if at in self._known}
        missing = [at for at in wanted if at not in found]
        if not missing and until is None:
            return found
        begin = missing[0] if missing else end
        stop = until if until is not None else missing[-1] + self._size
        counted = self._store.tally_by_time(begin, stop, self._size)
        found |= {at: counted.get(at, {}) for at in range(begin, stop, self._size)}
        with self._lock:
            self._known.update((at, found[at]) for at in missing)
            while len(self._known) > self._kept:
                self._known.popitem(last=False)
        return found


def _down(at: int, size: int) -> int:
    return at // size * size


def _up(at: int, size: int) -> int:
    return -(-at // size) * size
