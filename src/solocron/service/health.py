"""Readiness: the store answers, and the node of this process can claim. One look serves every caller for seconds."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from solocron.errors import SolocronError

__all__ = ["Readiness"]

_FRESH = 5.0
_PATIENCE = 2.0


class Readiness:
    """Asks the store at most once in five seconds, however many probes there are."""

    def __init__(
        self, ping: Callable[[], object], *, node: Callable[[], bool] | None, clock: Callable[[], float]
    ) -> None:
        """`node` returns whether the node of this process can claim; None if the process runs none."""
        self._ping = ping
        self._node = node
        self._clock = clock
        self._lock = Lock()
        self._looked_at: float | None = None
        self._good = False

    def is_ready(self) -> bool:
        """Return whether the store answered within two seconds, during the last five, and a node here can claim."""
        if self._node is not None and not self._node():
            return False
        if not self._lock.acquire(timeout=_PATIENCE):
            return False  # the look under way takes too long already
        try:
            begun = self._clock()
            if self._looked_at is None or begun - self._looked_at >= _FRESH:
                try:
                    self._ping()
                    self._good = self._clock() - begun <= _PATIENCE
                except SolocronError:
                    self._good = False
                self._looked_at = self._clock()
            return self._good
        finally:
            self._lock.release()
