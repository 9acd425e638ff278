"""Deliver messages from a thread of its own: no loop and no body of the node waits for a network.

A message is tried a few times; a failed delivery is an event, never an exception. The queue is bounded: a message that
comes while it is full is not sent, and an event says so. The child of a fork begins with an empty queue: the waiting
messages belong to its parent.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable

from solocron.events import Events
from solocron.telemetry.https import NotDelivered

__all__ = ["Deliveries", "Send"]

Send = Callable[[], None]

TRIES = 3
_PAUSES = (1.0, 4.0)
_LIMIT = 1_000
_IDLE = 1.0
"""Seconds after which a thread without work ends."""


class Deliveries:
    """A queue and, while it is not empty, a thread."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._process = os.getpid()
        self._queue: deque[tuple[str, Send]] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing: float | None = None

    def add(self, what: str, send: Send) -> None:
        """Queue a message and return at once."""
        if self._process != os.getpid():  # after a fork: the thread is not here, and may have held the condition
            self._begin_anew()
        with self._changed:
            if len(self._queue) < _LIMIT:
                self._queue.append((what, send))
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="solocron-deliveries", daemon=True)
                    self._thread.start()
                self._changed.notify_all()
                return
        self._not_delivered(what, f"{_LIMIT} messages wait already")

    def close(self, timeout: float = 5.0) -> None:
        """Send the waiting messages within `timeout`, without pauses between tries, and end the thread."""
        if self._process != os.getpid():
            self._begin_anew()
        with self._changed:
            self._closing = time.monotonic() + timeout
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        with self._changed:
            self._closing = None

    def _work(self) -> None:
        while True:
            with self._changed:
                until = time.monotonic() + _IDLE
                while not self._queue and self._closing is None and (left := until - time.monotonic()) > 0:
                    self._changed.wait(left)
                if not self._queue or (self._closing is not None and time.monotonic() >= self._closing):
                    self._thread = None
                    return
                what, send = self._queue.popleft()
            self._deliver(what, send)

    def _deliver(self, what: str, send: Send) -> None:
        for tries in range(1, TRIES + 1):
            try:
                send()
                return
            except NotDelivered as error:
                if tries == TRIES or not error.again:
                    self._not_delivered(what, str(error))
                    return
            except Exception as error:  # noqa: BLE001 - an error of a plug-in costs only this message
                self._not_delivered(what, repr(error))
                return
            with self._changed:
                if self._closing is None:
                    self._changed.wait_for(lambda: self._closing is not None, _PAUSES[tries - 1])

    def _not_delivered(self, what: str, why: str) -> None:
        self._events.emit("not delivered", what=what, reason=why)
