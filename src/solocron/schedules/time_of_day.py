"""The times of day that a cron expression names: hours x minutes x seconds, found by table lookup."""

from __future__ import annotations

from functools import lru_cache

__all__ = ["DAY", "Dial"]

DAY = 86_400
_NONE = 255


class _Ring:
    """The values 0 to size-1 that a field allows, one byte each, so that a thousand jobs stay small."""

    __slots__ = ("ceil", "floor", "rank")

    def __init__(self, values: frozenset[int], size: int) -> None:
        every = range(size + 1)
        self.ceil = bytes(min((v for v in values if v >= at), default=size) for at in every)
        self.floor = bytes(max((v for v in values if v <= at), default=_NONE) for at in every)
        self.rank = bytes(sum(v < at for v in values) for at in every)


@lru_cache(maxsize=1024)
def _ring(values: frozenset[int], size: int) -> _Ring:
    return _Ring(values, size)


class Dial:
    """A set of times of day, in seconds after midnight."""

    __slots__ = ("_h", "_m", "_s", "first", "last", "per_day")

    def __init__(self, hours: frozenset[int], minutes: frozenset[int], seconds: frozenset[int]) -> None:
        self._h, self._m, self._s = _ring(hours, 24), _ring(minutes, 60), _ring(seconds, 60)
        self.first = min(hours) * 3600 + min(minutes) * 60 + min(seconds)
        self.last = max(hours) * 3600 + max(minutes) * 60 + max(seconds)
        self.per_day = len(hours) * len(minutes) * len(seconds)

    def ceil(self, time: int) -> int:
        """Return the first time of day not before `time`; DAY or more if there is none left today."""
        minute, second = divmod(time, 60)
        s = self._s.ceil[second]
        if s == 60:
            minute += 1
            s = self._s.ceil[0]
        hour, minute = divmod(minute, 60)
        m = self._m.ceil[minute]
        if m != minute:
            s = self._s.ceil[0]
            if m == 60:
                hour += 1
                m = self._m.ceil[0]
        h = self._h.ceil[hour]
        return h * 3600 + m * 60 + s if h == hour else h * 3600 + self.first % 3600

    def floor(self, time: int) -> int:
        """Return the last time of day not after `time`; negative if there was none today."""
        minute, second = divmod(time, 60)
        s = self._s.floor[second]
        if s == _NONE:
            minute -= 1
            s = self._s.floor[59]
        hour, minute = divmod(minute, 60)
        m = self._m.floor[minute]
        if m != minute:
            s = self._s.floor[59]
            if m == _NONE:
                hour -= 1
                m = self._m.floor[59]
        h = self._h.floor[hour] if hour >= 0 else _NONE
        if h == _NONE:
            return -1
        return h * 3600 + m * 60 + s if h == hour else h * 3600 + self.last % 3600

    def rank(self, time: int) -> int:
        """Return the number of times of day before `time`, which may be DAY itself."""
        minute, second = divmod(time, 60)
        hour, minute = divmod(minute, 60)
        per_minute = self._s.rank[60]
        found = self._h.rank[hour] * self._m.rank[60] * per_minute
        if self._h.ceil[hour] == hour:
            found += self._m.rank[minute] * per_minute
            if self._m.ceil[minute] == minute:
                found += self._s.rank[second]
        return found
