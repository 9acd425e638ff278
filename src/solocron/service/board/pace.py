"""How often open pages are told of what goes as it should: what they then cost is a small share of a core.

When a page is told of a change it fetches itself. In a fleet that starts something every moment, twenty pages would
make the service work all the time, perhaps on the machine of the nodes. So every answer to an open page is a debt that
is paid off over time, and a run that began or succeeded is told when it is paid. What went wrong, which node died or
took over, and what a person did is told at once.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

__all__ = ["TellingPace"]

_SHARE = 0.03
"""Of a core that the answers to open pages may take in the long run."""
_ADVANCE = 1.0
"""Seconds of work by which urgent changes may run ahead of that."""
_LATEST = 10.0
"""Seconds after which a change is told, whatever the debt."""


class TellingPace:
    """A debt of seconds of work. Any thread may add to it; one asks."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._debt = 0.0
        self._at = self._told_at = clock()

    def spent(self, seconds: float) -> None:
        """Note what the answer to an open page took."""
        with self._lock:
            self._debt += seconds

    def may_tell(self, *, urgent: bool) -> bool:
        """Return whether readers may be told of something now; if so, that is when they were told last."""
        with self._lock:
            now = self._clock()
            self._debt = max(0.0, self._debt - _SHARE * (now - self._at))
            self._at = now
            if self._debt > (_ADVANCE if urgent else 0.0) and now - self._told_at < _LATEST:
                return False
            self._told_at = now
            return True
