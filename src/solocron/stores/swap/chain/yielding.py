"""When a client lets others commit: pure, the number of calls and their time are handed in."""

from __future__ import annotations

__all__ = ["Yielding"]

_FEWEST, _MOST = 2, 16
_TRIPS = 5.0
"""Longest gap, in round trips. A client that lost a race needs one to read the winner and one to create its own."""
_LONGEST = 0.25
"""Round trips are taken for no longer than that, in seconds: a slow call is no reason for a long gap."""


class Yielding:
    """Own commits in a row, and how many of them may be made before a gap.

    The client that made the last commit is the first to know it. Without gaps it would make the next ones too, and
    all others would lose race after race: seen with five clients, of which one made every commit for a minute. A gap
    that no other client uses is the last for a while, so that a client alone loses next to nothing.
    """

    def __init__(self) -> None:
        self._row = 0
        self._allowed = _FEWEST
        self._trip = 0.0

    def gap(self) -> float:
        """Return the most seconds to wait before the next commit; 0: none."""
        return _TRIPS * self._trip if self._row >= self._allowed else 0.0

    def won(self, trip: float) -> None:
        """Note a commit that was made at the first try, and how long its creation took."""
        self._trip = min(_LONGEST, trip if not self._trip else (3 * self._trip + trip) / 4)
        if self._row >= self._allowed:  # no client used the gap
            self._row, self._allowed = 0, min(2 * self._allowed, _MOST)
        self._row += 1

    def lost(self) -> None:
        """Note that another client commits too."""
        self._row, self._allowed = 0, _FEWEST
