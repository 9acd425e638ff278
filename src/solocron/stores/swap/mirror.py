"""Ranges for key stores that have none: keys and values in memory, fed by the server's stream of changes.

A mirror is a true state of the server, only a past one. `wait_for` brings it to a number of the stream that was read
from the server, which makes a read linearizable. Index keys that follow from documents and records are made here and
never sent: a claim is one write instead of four.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Mapping, Sequence

from solocron.stores.swap.key_store import Condition, Found, Item, Span, Swapped, holds
from solocron.stores.swap.layout import derived

__all__ = ["Mirror"]

_KEPT = 1_000
"""Notifications that a client can be behind before it is told that it missed some."""


class Mirror:
    """The keys of one namespace as of `applied`, a number of the stream; marks are such numbers too, or are told."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.applied = 0
        self.items: dict[str, Item] = {}
        self.gone: dict[str, int] = {}
        """Numbers of the deletions that the server still knows of: it compares with them while they are there."""
        self._order: list[str] = []
        self._derived: dict[str, tuple[str, ...]] = {}
        """The index keys of each key that has some."""
        self._notified: list[tuple[int, str | None]] = []

    def put(self, key: str, value: str, number: int, mark: Hashable | None = None) -> None:
        """Apply one write."""
        with self.changed:
            mark = number if mark is None else mark
            self._set(key, value, mark)
            self.gone.pop(key, None)
            index = derived(key, value)
            for old in self._derived.pop(key, ()):
                if old not in index:
                    self._drop(old)
            for one, text in index.items():
                self._set(one, text, mark)
            if index:
                self._derived[key] = tuple(index)
            self._reach(number)

    def delete(self, key: str, number: int, *, compared: bool = False) -> None:
        """Apply one deletion; `compared`: the server compares later checks with its number."""
        with self.changed:
            for one in (key, *self._derived.pop(key, ())):
                self._drop(one)
            if compared:
                self.gone[key] = number
            self._reach(number)

    def _set(self, key: str, value: str, mark: Hashable) -> None:
        if key not in self.items:
            insort(self._order, key)
        self.items[key] = Item(key, value, mark)

    def _drop(self, key: str) -> None:
        if self.items.pop(key, None) is not None:
            del self._order[bisect_left(self._order, key)]

    def notify(self, value: str | None, number: int) -> None:
        """Apply a notification; None: some that were missed."""
        with self.changed:
            self._notified = [*self._notified[-_KEPT:], (number, value)]
            self._reach(number)

    def reach(self, number: int) -> None:
        """Note that everything up to a number is applied, also what is not there any more."""
        with self.changed:
            self._reach(number)

    def _reach(self, number: int) -> None:
        self.applied = max(self.applied, number)
        self.changed.notify_all()

    def forget_deletion(self, key: str) -> None:
        """Note that the server does not know of a deletion any more."""
        with self.changed:
            self.gone.pop(key, None)

    def wait_for(self, number: int, timeout: float) -> bool:
        """Wait until everything up to a number is applied; False if that takes too long."""
        with self.changed:
            return self.changed.wait_for(lambda: self.applied >= number, timeout)

    def fetch(self, keys: Sequence[str], spans: Sequence[Span], server: str) -> Found:
        with self.changed:
            items = {key: self.items[key] for key in keys if key in self.items}
            return Found(items, [self._page(span) for span in spans], server)

    def _page(self, span: Span) -> list[Item]:
        first, end = bisect_left(self._order, span.low), bisect_left(self._order, span.high)
        if span.limit is not None:  # of a long span only what is asked for is copied
            first, end = (max(first, end - span.limit), end) if span.reverse else (first, min(end, first + span.limit))
        keys = self._order[first : max(first, end)]
        if span.reverse:
            keys.reverse()
        found = [self.items[key] for key in keys]
        return [item._replace(value="") for item in found] if span.bare else found

    def holds(self, key: str, condition: Condition) -> bool:
        """Return whether a check holds here."""
        item = self.items.get(key)
        return holds(condition, None if item is None else item.mark)

    def seen(self, marks: Mapping[str, Hashable], look: str | None, also: str | None, server: str) -> Swapped:
        """Return the reply of a commit that is applied here, with what was to be read on the way."""
        spans = [] if look is None else [Span(look, look[:-1] + chr(ord(look[-1]) + 1), 1, bare=True)]
        found = self.fetch([] if also is None else [also], spans, server)
        there = None if look is None else bool(found.pages[0])
        return Swapped(marks, there, found.items.get(also or ""), "" if also is None else server)

    def news(self, after: int, timeout: float, ended: Callable[[], bool]) -> tuple[int, Sequence[str | None]]:
        """Wait for notifications after a number."""
        with self.changed:
            self.changed.wait_for(lambda: ended() or self._since(after), timeout)
            return (after, []) if ended() else (max(after, self.notified), self._since(after))

    @property
    def notified(self) -> int:
        """The number of the last notification; 0: there was none."""
        return self._notified[-1][0] if self._notified else 0

    def _since(self, after: int) -> list[str | None]:
        missed = [None] if len(self._notified) > _KEPT and self._notified[0][0] > after else []
        return [*missed, *(value for number, value in self._notified if number > after)]
