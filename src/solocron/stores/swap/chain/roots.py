"""Roots of a chain: finding the newest one, reading its state, making the next, and deleting what it replaces.

Roots have consecutive numbers and are made in that order. Of the old ones every 64th is kept among the last 4,096, and
every 4,096th for good, so that `reached` can be answered by reading objects: a listing may be behind.
"""

from __future__ import annotations

from collections.abc import Sequence

from solocron.clock import SECOND
from solocron.errors import StoreUnavailable
from solocron.stores.swap.chain.objects import Objects
from solocron.stores.swap.chain.state import ChainPace
from solocron.stores.swap.chain.text import (
    Entries,
    Root,
    Segment,
    entries_of,
    entries_to_bytes,
    number_of,
    root_name,
    segment_name,
)

__all__ = ["Roots"]

_STRIDES = (64, 4_096)
_GROUPS = 2
"""Groups of commits, each up to a root, that one pass deletes."""
_LISTED = 1_000


class Roots:
    """The roots of one namespace."""

    def __init__(self, objects: Objects, folder: str, pace: ChainPace) -> None:
        self._objects = objects
        self._folder = folder
        self._pace = pace

    # --- reading

    def reached(self, number: int) -> bool:
        """Return whether a root of this number, or a later one, has ever been made."""
        # A root is deleted only after the one that stands for it was made. So they are asked for in this order.
        tried = dict.fromkeys((number, *(-(-number // stride) * stride for stride in _STRIDES)))
        return any(self._objects.get(self._folder + root_name(one)) is not None for one in tried)

    def newest(self) -> int:
        """Return the number of the newest root; 0: there is none. A listing that is behind costs calls only."""
        listed = self._objects.names(f"{self._folder}r/", _LISTED)
        low = max(map(number_of, listed), default=0)
        if low and not self.reached(low):
            low = 0
        step = 1
        while self.reached(low + step):
            low, step = low + step, step * 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.reached(middle) else (low, middle)
        return low

    def get(self, number: int) -> Root | None:
        content = self._objects.get(self._folder + root_name(number))
        return None if content is None else Root.of(content)

    def entries(self, root: Root) -> Entries:
        """Return the keys and values of a root; raise if it was replaced long ago, and something of it is deleted."""
        return self._merged(root.segments)

    def _merged(self, segments: Sequence[Segment]) -> Entries:
        found: Entries = {}
        for segment in segments:
            for name in segment.names:
                content = self._objects.get(self._folder + name)
                if content is None:
                    raise StoreUnavailable(f"{self._objects.url}: a snapshot was replaced while it was read; try again")
                found |= entries_of(content)
        return found

    # --- making the next

    def make(self, number: int, delta: Entries) -> bool:
        """Make a root from the one before and what has changed since; False where that one is not there.

        Any client may do it. Two at once write segments of the same entries, and one of them creates the root.
        """
        if self._objects.get(self._folder + root_name(number)) is not None:
            return True
        before = Root(0, 0) if number == 1 else self.get(number - 1)
        if before is None:
            return False
        kept = list(before.segments)
        merged: list[Segment] = []
        size = sum(map(len, entries_to_bytes(delta, self._objects.limits.bytes)))
        # As in a log-structured tree: what is not much larger is merged, so that segments stay few and are rarely
        # written again.
        while kept and kept[-1].bytes <= 2 * (size + sum(one.bytes for one in merged)):
            merged.insert(0, kept.pop())
        entries = self._merged(merged) | delta
        if not kept:
            entries = {key: entry for key, entry in entries.items() if entry[0] is not None}
        parts = entries_to_bytes(entries, self._objects.limits.bytes)
        segment = Segment(tuple(segment_name(number, part) for part in parts), sum(map(len, parts)))
        for name, content in zip(segment.names, parts, strict=True):
            self._objects.create(self._folder + name, content)
        root = Root(number, self._objects.now(), (*kept, segment))
        self._objects.create(self._folder + root_name(number), root.to_bytes())
        return True

    # --- deleting

    def trim(self) -> int:
        """Delete commits that a root has replaced for long enough, some at a time; return how many."""
        names = self._objects.names(f"{self._folder}c/", _GROUPS * self._pace.commits)
        deleted = 0
        for releasing in sorted({self._pace.releasing(number_of(name)) for name in names})[:_GROUPS]:
            if not self._releases(releasing):
                break
            for name in names:
                if self._pace.releasing(number_of(name)) == releasing:
                    self._objects.delete(name)
                    deleted += 1
        return deleted

    def _releases(self, number: int) -> bool:
        """Return whether a root has existed for long enough; then delete what else it replaces.

        The time in a root proves nothing about that root: its maker may have slept before it created it. It is told
        after the root before was read, so the time in the next root counts.
        """
        following = self.get(number + 1)
        if following is None:
            # Not made yet, or deleted long ago: then a later one was made, and this one is still not there.
            return self.reached(number + 2) and self.get(number + 1) is None
        if self._objects.now() - following.made_at < self._pace.kept * SECOND:
            return False
        root = self.get(number)
        if root is not None:
            self._drop_replaced(root)
        return True

    def _drop_replaced(self, root: Root) -> None:
        """Delete the segments that only the root before has, and the roots that others stand for."""
        before = self.get(root.number - 1)
        if before is not None:
            for segment in before.segments:
                for name in () if segment in root.segments else segment.names:
                    self._objects.delete(self._folder + name)
        near, far = _STRIDES
        for old, stride in ((root.number - near, near), (root.number - far, far)):
            if old > 0 and old % stride:
                self._objects.delete(self._folder + root_name(old))
