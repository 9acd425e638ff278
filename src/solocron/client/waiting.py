"""Wait for the end of a run by polling the store, less and less often; the caller chooses how to sleep."""

from __future__ import annotations

from collections.abc import Callable

from solocron.clock import Clock
from solocron.errors import WaitTimeout
from solocron.views import RunView

__all__ = ["Waiting"]

_FIRST, _GROWTH, _LAST = 0.01, 1.5, 0.5


class Waiting:
    """The wait of one caller: call `look()`; while it returns None, sleep for `pause` seconds and call it again."""

    def __init__(
        self, run: str, limit: float | None, *, find: Callable[[], tuple[RunView, bool]], clock: Clock
    ) -> None:
        self._run = run
        self._limit = limit
        self._find = find
        self._clock = clock
        self._until = None if limit is None else clock.boot() + limit
        self._next = _FIRST
        self.pause = 0.0

    def look(self) -> RunView | None:
        """Return the last attempt of a run that is over, None if it is not over; raise when the time is up."""
        view, is_over = self._find()
        if is_over:
            return view
        left = None if self._until is None else self._until - self._clock.boot()
        if left is not None and left <= 0:
            raise WaitTimeout(f"{self._run} is {view.status} after {self._limit:g} s of waiting; it goes on by itself.")
        self.pause = self._next if left is None else min(self._next, left)
        self._next = min(self._next * _GROWTH, _LAST)
        return None
