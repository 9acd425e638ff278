"""Rates: how often a caller may do something in a minute, counted in this process."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Lock

__all__ = ["RateLimit"]

_WINDOW = 60.0
_MOST_CALLERS = 10_000
"""Callers that are remembered; beyond that the one that was quiet for longest is forgotten."""


class RateLimit:
    """Allows each caller `most` acts within any minute."""

    def __init__(self, most: int, *, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._lock = Lock()
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()

    def wait(self, caller: str) -> int:
        """Count one act and return 0; if the rate is used up count nothing and return the seconds to wait."""
        now = self._clock()
        with self._lock:
            acts = self._seen.setdefault(caller, deque())
            self._seen.move_to_end(caller)
            if len(self._seen) > _MOST_CALLERS:
                self._seen.popitem(last=False)
            while acts and now - acts[0] >= _WINDOW:
                acts.popleft()
            if len(acts) < self._most:
                acts.append(now)
                return 0
            return max(1, round(_WINDOW - (now - acts[0])))
