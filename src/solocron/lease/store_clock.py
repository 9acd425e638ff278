"""The store's clock as one node knows it: its offset from the node's boot clock, and since when it ran evenly.

Every reply of the store is a reading, taken somewhere between request and reply. Nothing here calls anything;
`OwnLease` keeps one and guards it.
"""

from __future__ import annotations

__all__ = ["StoreClock"]

SECOND = 1_000_000

DRIFT = 0.05
"""Maximum assumed difference in rate of two clocks that run evenly."""


class StoreClock:
    """An estimate that is never wrong by more than a round trip, and a memory of the last leap forward."""

    def __init__(self) -> None:
        self._ahead: float | None = None
        self._most = 0.0
        self._read_at = 0.0
        self._even_since = 0
        """Store time from which on every reading agreed with the one before."""

    def read(self, now: int, *, asked: float, replied: float) -> bool:
        """Record that the store's clock read `now` between the boot times `asked` and `replied`; 0 if it is unknown.

        True if it has leapt forward since the last reading: what was to come may be due. Too high an estimate wakes the
        node before its slots; one reply to a request of known age corrects it.
        """
        if not now:
            return False
        least, most = now / SECOND - replied, now / SECOND - asked
        allowed = self._most + max(0.0, replied - self._read_at) * DRIFT
        leapt = self._ahead is not None and least > allowed
        if self._ahead is None or leapt:  # nothing is known of the time before
            self._even_since = now
            self._most = most
        else:
            self._most = min(allowed, most)
        self._read_at = max(self._read_at, replied)
        if self._ahead is None or least > self._ahead or least < self._ahead - 1:
            self._ahead = least
        else:  # let it sink slowly, so that a drifting clock is followed
            self._ahead -= (self._ahead - least) / 64
        self._ahead = min(self._ahead, most)
        return leapt

    def boot_of(self, instant: int) -> float | None:
        """Return the boot time at which the store's clock has certainly reached an instant."""
        return None if self._ahead is None else instant / SECOND - self._ahead

    def time_of(self, boot: float) -> int | None:
        """Return the store's time at a boot time."""
        return None if self._ahead is None else round((boot + self._ahead) * SECOND)

    def ran_evenly_since(self, instant: int) -> bool:
        """Return whether an instant that the store wrote can be compared with its present time.

        What was written before a leap forward seems to lie further back than it does.
        """
        return self._ahead is not None and instant >= self._even_since
