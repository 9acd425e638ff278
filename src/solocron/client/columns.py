"""Counts of a span in columns, of which closed ones are counted once.

A dense hour has forty thousand records, and no index has their nodes: to count them takes a third of a second. A record
never changes, so that a picture which is drawn again and again counts only its newest column anew. Columns begin at
whole multiples of their size: two looks at a span that moves on have most of them in common.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from threading import Lock

from solocron.clock import SECOND
from solocron.stores.contract import Store
from solocron.stores.log import DENSITY_SPAN

__all__ = ["Columns", "size_of"]

_MOST = 90
_MINUTE = 60 * SECOND
_SIZES = tuple(seconds * SECOND for seconds in (1, 5, 10, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400))
_SETTLED = _MINUTE
"""Microseconds after which a column is final: commits become visible a little later than their time."""
_AT_ONCE = 6 * DENSITY_SPAN
"""The longest part that one statement counts: no reader's statement may take long."""
_KEPT = 5_000

Counts = Mapping[str | None, Mapping[str, int]]
"""Records by node and status; the node is None where all are counted together."""


def size_of(span: int) -> int:
    """Return the size of the columns of a span."""
    return next((size for size in _SIZES if span <= size * _MOST), _SIZES[-1])


class Columns:
    """Counts of a namespace. Safe to call from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._known: OrderedDict[tuple[int, bool, int], Counts] = OrderedDict()

    def counts(self, start: int, end: int, now: int, *, by_node: bool) -> Iterator[tuple[int, int, Counts]]:
        """Yield beginning, end and counts of each column that has any; the first one begins at or before `start`."""
        size = size_of(end - start)
        first, final = start // size * size, min(now - _SETTLED, end) // size * size
        found = self._closed(first, final, size, by_node) if first < final else {}
        begin = max(first, final)
        minutes = min(now - _SETTLED, end) // _MINUTE * _MINUTE
        if size > _MINUTE and begin < minutes:  # an open column of hours, from its closed minutes
            for counts in self._closed(begin, minutes, _MINUTE, by_node).values():
                found[begin] = _sum(found.get(begin, {}), counts)
        if size <= _MINUTE:  # up to ninety open columns, in one statement
            for at, counts in self._counted(begin, end, size, by_node).items():
                found[at] = _sum(found.get(at, {}), counts)
            begin = end
        for at in range(begin, end, size):
            for counts in self._counted(max(at, minutes), min(at + size, end), size, by_node).values():
                found[at] = _sum(found.get(at, {}), counts)
        for at, counts in sorted(found.items()):
            if counts:
                yield at, min(at + size, end), counts

    def _closed(self, first: int, end: int, size: int, by_node: bool) -> dict[int, Counts]:
        """Return the counts of columns that are final. Those that are not known are counted, the newest first."""
        wanted = range(first, end, size)
        with self._lock:
            found = {at: self._known[size, by_node, at] for at in wanted if (size, by_node, at) in self._known}
        missing = [at for at in wanted if at not in found]
        while missing:
            last = missing[-1]
            begin = max(missing[0], last + size - max(DENSITY_SPAN if by_node else _AT_ONCE, size))
            begin = first + -(-(begin - first) // size) * size
            counted = self._counted(begin, last + size, size, by_node)
            some = {at: counted.get(at, {}) for at in missing if at >= begin}
            found |= some
            missing = [at for at in missing if at < begin]
            with self._lock:
                self._known.update(((size, by_node, at), counts) for at, counts in some.items())
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
        return found

    def _counted(self, start: int, end: int, size: int, by_node: bool) -> dict[int, Counts]:
        if start >= end:
            return {}
        if not by_node:
            return {at: {None: counts} for at, counts in self._store.tally_by_time(start, end, size).items()}
        found: dict[int, dict[str | None, Mapping[str, int]]] = {}
        for (at, node), counts in self._store.density(start, end, size).items():
            if node is not None:  # slots that no node ran are no attempts
                found.setdefault(at, {})[node] = counts
        return dict(found)


def _sum(one: Counts, other: Counts) -> Counts:
    found = {node: dict(counts) for node, counts in one.items()}
    for node, counts in other.items():
        mine = found.setdefault(node, {})
        for status, count in counts.items():
            mine[status] = mine.get(status, 0) + count
    return found
