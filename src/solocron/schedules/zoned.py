"""A wall clock in a zone: from readings to instants, through the hours that clock changes skip and repeat.

Time is cut into spans in which a zone's clocks run evenly. A reading belongs to a slot of a span. A span leaves out the
hour that a chosen rule gives to its neighbour, and a gap's lost readings may be waiting at the gap's end.
"""

from __future__ import annotations

from functools import lru_cache

from solocron.schedules.native import FIRST, LAST
from solocron.schedules.readings import Wall
from solocron.schedules.zone import MARGIN, Zone, load_zone

__all__ = ["Local"]

# first instant, first instant beyond, seconds ahead of UTC, seconds skipped by the clocks just before the first
_Span = tuple[int, int, int, int]

# Blocks of 2**22 s, seven weeks: most hold one span, and an instant's block is found by a shift.
_BLOCK = 22

# No expression rests longer than 40 years (29 February on a Monday); one that is silent for a century never fires.
_HORIZON = 36_525 * 86_400


class _Spans(dict[int, tuple[_Span, ...]]):
    """Block number -> its spans under one rule for folds, found when first asked for."""

    __slots__ = ("_fold", "_zone")
    _LIMIT = 4096

    def __init__(self, zone: Zone, fold: str) -> None:
        self._zone = zone
        self._fold = fold

    def __missing__(self, block: int) -> tuple[_Span, ...]:
        if len(self) >= self._LIMIT:
            self.clear()
        low, high = block << _BLOCK, (block + 1) << _BLOCK
        # A fold shortens its neighbours, so changes just outside the block matter as well.
        begin, end = low - MARGIN, high + MARGIN
        offset, gap = self._zone.offset(begin), 0
        spans = []
        for at, before, after in self._zone.changes(begin, end):
            repeated = max(0, before - after)
            spans.append((begin, at - repeated if self._fold == "last" else at, before, gap))
            begin, offset, gap = at + repeated if self._fold == "first" else at, after, max(0, after - before)
        spans.append((begin, end, offset, gap))
        self[block] = clipped = tuple(
            (max(begin, low), min(end, high), offset, gap if begin >= low else 0)
            for begin, end, offset, gap in spans
            if begin < high and end > low
        )
        return clipped


@lru_cache(maxsize=1024)
def _spans(name: str, fold: str) -> _Spans:
    return _Spans(load_zone(name), fold)


class Local:
    """The slots of a wall clock in a zone, in seconds since 1970 UTC.

    `fold` says which of two equal readings count: "first", "last" or "both". With `run_after`, readings inside a
    gap wait once, together, at the first instant after it.
    """

    __slots__ = ("_run_after", "_spans", "wall")

    def __init__(self, wall: Wall, zone: str, *, fold: str, run_after: bool) -> None:
        self.wall = wall
        self._spans = _spans(zone, fold)
        self._run_after = run_after

    def ceil(self, at: int) -> int:
        """Return the first slot not before `at`; LAST if none comes within a century."""
        wall, spans = self.wall, self._spans
        limit = min(at + _HORIZON, LAST)
        while at < limit:
            block = at >> _BLOCK
            for begin, end, offset, gap in spans[block]:
                if at >= end:
                    continue
                if at <= begin:
                    at = begin
                    if gap and self._makes_up(begin + offset, gap):
                        return begin
                found = wall.ceil(at + offset) - offset
                if found < end:
                    return found
            # Nothing here: continue with the next block, or directly at the earliest possible next reading.
            at = (block + 1) << _BLOCK
            at = max(at, wall.ceil(at - MARGIN) - MARGIN)
        return LAST

    def floor(self, at: int) -> int:
        """Return the last slot not after `at`; FIRST - 1 if none came within a century."""
        wall, spans = self.wall, self._spans
        limit = max(at - _HORIZON, FIRST)
        while at >= limit:
            block = at >> _BLOCK
            for begin, end, offset, gap in reversed(spans[block]):
                if at < begin:
                    continue
                found = wall.floor(min(at, end - 1) + offset) - offset
                if found >= begin:
                    return found
                if gap and self._makes_up(begin + offset, gap):
                    return begin
            at = (block << _BLOCK) - 1
            at = min(at, wall.floor(at + MARGIN) + MARGIN)
        return FIRST - 1

    def count(self, a: int, b: int) -> int:
        """Return the number of slots from `a` on, before `b`."""
        wall, spans = self.wall, self._spans
        found = 0
        for block in range(a >> _BLOCK, ((b - 1) >> _BLOCK) + 1):
            for begin, end, offset, gap in spans[block]:
                low, high = max(a, begin), min(b, end)
                if low >= high:
                    continue
                found += wall.count(low + offset, high + offset)
                if gap and low == begin and self._makes_up(begin + offset, gap) and not wall.has(begin + offset):
                    found += 1
        return found

    def _makes_up(self, reading: int, gap: int) -> bool:
        """True if the clocks, jumping to `reading`, skipped a slot that must be made up for."""
        return self._run_after and self.wall.ceil(reading - gap) < reading
