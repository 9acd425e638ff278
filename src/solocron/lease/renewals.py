"""The renewals of one session that the store has acknowledged lately: the evidence that a store went back."""

from __future__ import annotations

from collections import deque

__all__ = ["AcknowledgedRenewals"]


class AcknowledgedRenewals:
    """Acknowledged renewals by number, with the boot time before each was sent, for three leases."""

    def __init__(self, began: float, lease: float, at: int) -> None:
        self._lease = lease
        self._acknowledged: deque[tuple[int, float]] = deque([(0, began)])
        self.at = at
        """The store's time when it acknowledged the last one, or the beginning."""

    @property
    def beats(self) -> int:
        """The number of the last one."""
        return self._acknowledged[-1][0]

    @property
    def renewed(self) -> float:
        """The boot time before the last one was sent."""
        return self._acknowledged[-1][1]

    def acknowledge(self, beats: int, asked: float, at: int) -> None:
        self._acknowledged.append((beats, asked))
        self.at = at
        while len(self._acknowledged) > 2 and self._acknowledged[1][1] < asked - 3 * self._lease:
            self._acknowledged.popleft()

    def lost(self, beats: int | None) -> float:
        """Seconds between the last renewal that is left (None: not even the beginning is) and the last one."""
        left = [asked for number, asked in self._acknowledged if number <= (-1 if beats is None else beats)]
        return self.renewed - (left[-1] if left else self._acknowledged[0][1])
