"""The first count of the last 24 hours, in the background: a page says how far it is, and does not wait for it.

A closed hour is counted once in a process, but at first all of them are to be counted: seconds, where a day has a
million records. A thread counts them, the newest first, one at a time if one takes long; the first page that is asked
for begins it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Lock, Thread

from solocron.client import Client
from solocron.client.hour_counts import HOUR

__all__ = ["CountSoFar", "FirstCount", "StillCounting"]

log = logging.getLogger("solocron.service")

HOURS = 24
_AT_ONCE = 0.02
"""Seconds that the last hour may take for the whole day to be counted in one statement."""


@dataclass(frozen=True, slots=True)
class CountSoFar:
    """Progress of counting the last 24 hours."""

    hours: int
    of: int = HOURS


class StillCounting(Exception):
    """The last hours are still being counted; no page waits for it."""

    def __init__(self, so_far: CountSoFar) -> None:
        super().__init__(f"{so_far.hours} of {so_far.of} hours are counted.")
        self.so_far = so_far


class FirstCount:
    """Counts once. Any thread may wait for it; one that fails is begun anew by the next caller."""

    def __init__(self, client: Callable[[], Client], *, clock: Callable[[], float], ready: Callable[[], None]) -> None:
        self._client = client
        self._clock = clock
        self._ready = ready
        self._lock = Lock()
        self._over = Event()
        self._thread: Thread | None = None
        self._began = 0.0
        self._hours = 0
        self._stopped = False

    def check(self, within: float) -> None:
        """Return when all is counted or the count has failed; raise StillCounting if it takes longer than that."""
        if self._over.is_set():
            return
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._run, name="solocron-count", daemon=True)
                self._began, self._hours, self._stopped = self._clock(), 0, False
                self._thread.start()
            thread, left = self._thread, self._began + within - self._clock()
        thread.join(max(0.0, left))  # from its beginning on: only the first pages wait at all
        if thread.is_alive():
            raise StillCounting(CountSoFar(self._hours))

    def close(self) -> None:
        """Stop counting, after the statement that is under way."""
        self._stopped = True
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        try:
            self._count()
            if self._hours == HOURS:
                self._over.set()
        except Exception as error:  # noqa: BLE001 - the caller reads the same, and tells what is wrong
            log.info("the records of the last hours are not counted yet: %s", type(error).__name__)
        finally:
            with self._lock:
                self._thread = None
        if self._hours == HOURS:
            self._ready()

    def _count(self) -> None:
        client = self._client()
        client.first_created()  # reads all jobs, once: the census of the pages
        now, counts = client.store.clock(), client.hour_counts
        begun = self._clock()
        counts.by_hour(now - HOUR, now)
        if self._clock() - begun <= _AT_ONCE:
            counts.by_hour(now - HOURS * HOUR, now)
            self._hours = HOURS
        while self._hours < HOURS and not self._stopped:
            self._hours += 1
            counts.by_hour(now - self._hours * HOUR, now)
