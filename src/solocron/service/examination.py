"""The doctor's look at a namespace, kept for some seconds: it reads much, and many may ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from solocron.client import Client
from solocron.clock import from_us
from solocron.doctor import Circumstances, examine, failed, unreachable
from solocron.errors import ConflictError, EmptyStore
from solocron.runtime import Threads
from solocron.service.moments import apart
from solocron.service.shown import scrubbed
from solocron.stores.contract import Check

__all__ = ["Examination", "Examined"]

_KEPT = 10.0


@dataclass(frozen=True, slots=True)
class Examined:
    """The checks of one look."""

    checks: tuple[Check, ...]
    at: datetime

    @property
    def ok(self) -> bool:
        """True if no line is FAIL."""
        return not failed(list(self.checks))


class Examination:
    """Looks at most once in ten seconds. Nothing is written."""

    def __init__(
        self,
        client: Callable[[], Client],
        *,
        own: Callable[[], Sequence[Check]] = tuple,
        clock: Callable[[], float],
        wall: Callable[[], int],
    ) -> None:
        self._client = client
        self._own = own
        self._clock = clock
        self._wall = wall
        self._lock = Lock()
        self._repair = Lock()
        self._last: tuple[float, Examined] | None = None

    def look(self) -> Examined:
        """Return the last finding if it is fresh, else look; the lines about the service come last."""
        with self._lock:
            if self._last is None or self._clock() - self._last[0] >= _KEPT:
                found = Examined((*map(_shown, self._examine()), *self._own()), from_us(self._wall()))
                self._last = (self._clock(), found)
            return self._last[1]

    @contextmanager
    def repairing(self) -> Iterator[None]:
        """Let one repair at a time be under way, and look anew after it."""
        if not self._repair.acquire(blocking=False):
            raise ConflictError("a repair is under way already. Nothing was done.")
        try:
            yield
        finally:
            self._last = None
            self._repair.release()

    def _examine(self) -> list[Check]:
        around = Circumstances()
        try:
            with apart():
                return examine(self._client().store, Threads(), around)
        except EmptyStore as error:
            return unreachable(str(error), around)


def _shown(check: Check) -> Check:
    return Check(check.name, check.level, scrubbed(check.detail), check.remedy)
