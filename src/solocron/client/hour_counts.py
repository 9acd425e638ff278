"""Counts of records by status, of which closed hours are counted once.

A record never changes, and its time is that of the store at its commit. So an hour that ended a while ago is final: a
service that shows the counts of a day all the time counts only the two hours at its edges again.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from threading import Lock

from solocron.clock import SECOND
from solocron.stores.contract import Store

__all__ = ["HOUR", "HourCounts"]

HOUR = 3_600 * SECOND
_SETTLED = 60 * SECOND
"""Microseconds after which an hour is final: commits become visible a little later than their time."""
_KEPT = 800
"""Hours that are kept: a month of them."""


class HourCounts:
    """Counts of a namespace. Safe to call from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._hours: OrderedDict[int, Mapping[str, int]] = OrderedDict()

    def total(self, since: int, now: int) -> dict[str, int]:
        """Count the records since then by status."""
        first = -(-since // HOUR) * HOUR
        closed = max((now - _SETTLED) // HOUR * HOUR, first)
        counts: Counter[str] = Counter()
        if since < first:
            counts.update(self._store.tally(since, min(first, now + 1)))
        for hour in self._closed(first, closed).values():
            counts.update(hour)
        if closed <= now:
            counts.update(self._store.tally(closed))
        return {status: count for status, count in counts.items() if count}

    def by_hour(self, since: int, now: int) -> dict[int, Mapping[str, int]]:
        """Count the records since the hour of `since` by hour and status; an hour without records is left out."""
        first = since // HOUR * HOUR
        closed = max((now - _SETTLED) // HOUR * HOUR, first)
        found = dict(self._closed(first, closed))
        found |= self._store.tally_by_time(closed, now + 1, HOUR)
        return {hour: counts for hour, counts in sorted(found.items()) if counts}

    def _closed(self, first: int, end: int) -> dict[int, Mapping[str, int]]:
        """Return the counts of hours that are final, those that are not known counted in one statement."""
        wanted = range(first, end, HOUR)
        with self._lock:
            missing = [hour for hour in wanted if hour not in self._hours]
        if missing:
            found = self._store.tally_by_time(missing[0], missing[-1] + HOUR, HOUR)
            with self._lock:
                for hour in range(missing[0], missing[-1] + HOUR, HOUR):
                    self._hours[hour] = found.get(hour, {})
                while len(self._hours) > _KEPT:
                    self._hours.popitem(last=False)
        with self._lock:
            return {hour: self._hours[hour] for hour in wanted if hour in self._hours}
