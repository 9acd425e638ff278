"""Deliver messages from a thread of its own: no loop and no body of the node waits for a network.

A message is tried a few times; a failed delivery is an event, never an exception. A message of an alarm is tried again
only if its target has certainly not accepted it: one that timed out may have arrived, and a second one would wake a
person twice. The queues are bounded: a message that comes while its queue is full is not sent, and an event says so.
The child of a fork begins with empty queues: the waiting messages belong to its parent.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from solocron.events import Events
from solocron.model.documents.alarm_message import Delivery
from solocron.telemetry.https import NotDelivered

__all__ = ["Deliveries", "Send"]

Send = Callable[[], None]

TRIES = 3
_PAUSES = (1.0, 4.0)
_LIMIT = 1_000
_REMEMBERED = 100
"""Messages whose outcome is known here; a node asks for it at its next look."""
_IDLE = 1.0
"""Seconds after which a thread without work ends."""


_BEST_FIRST = (Delivery.DONE, Delivery.DOUBTFUL, Delivery.REFUSED)
"""An alarm that one of its targets has accepted was told."""


@dataclass(frozen=True, slots=True)
class _Order:
    """A message in the queue."""

    what: str
    send: Send
    alarm: str | None
    """Id of the alarm's message; None for a ping, which may arrive twice."""


class Deliveries:
    """Two queues and, while they are not empty, a thread."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._process = os.getpid()
        self._alarms: deque[_Order] = deque()
        """Sent before the pings, of which a target that is away may have many in line."""
        self._pings: deque[_Order] = deque()
        self._open: Counter[str] = Counter()
        """Targets that the message of an alarm is still to be sent to, by its id."""
        self._outcomes: dict[str, Delivery] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing: float | None = None

    def add(self, what: str, send: Send, *, alarm: str | None = None) -> None:
        """Queue a message and return at once."""
        if self._process != os.getpid():  # after a fork: the thread is not here, and may have held the condition
            self._begin_anew()
        order = _Order(what, send, alarm)
        with self._changed:
            if alarm is not None:
                self._open[alarm] += 1
            queue = self._pings if alarm is None else self._alarms
            if len(queue) < _LIMIT:
                queue.append(order)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="solocron-deliveries", daemon=True)
                    self._thread.start()
                self._changed.notify_all()
                return
        self._not_delivered(order, f"{_LIMIT} messages wait already", Delivery.REFUSED)

    def outcome(self, alarm: str) -> Delivery | None:
        """Return what became of the message of an alarm; None while it is being sent.

        A message without a target is done.
        """
        if self._process != os.getpid():
            self._begin_anew()
        with self._changed:
            return None if self._open[alarm] else self._outcomes.get(alarm, Delivery.DONE)

    def close(self, timeout: float = 5.0) -> bool:
        """Send the waiting messages within `timeout`, without pauses between tries, and end the thread.

        Return whether that was enough time.
        """
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
            return self._thread is None and not (self._alarms or self._pings)

    def _work(self) -> None:
        while True:
            with self._changed:
                until = time.monotonic() + _IDLE
                while (
                    not (self._alarms or self._pings)
                    and self._closing is None
                    and (left := until - time.monotonic()) > 0
                ):
                    self._changed.wait(left)
                queue = self._alarms or self._pings
                if not queue or (self._closing is not None and time.monotonic() >= self._closing):
                    self._thread = None
                    return
                order = queue.popleft()
            self._deliver(order)

    def _deliver(self, order: _Order) -> None:
        for tries in range(1, TRIES + 1):
            try:
                order.send()
                self._ended(order, Delivery.DONE)
                return
            except NotDelivered as error:
                doubtful = error.doubtful and order.alarm is not None
                if tries == TRIES or not error.again or doubtful:
                    delivery = Delivery.DOUBTFUL if error.doubtful else Delivery.REFUSED
                    self._not_delivered(order, f"{error}{'; it is not sent again' if doubtful else ''}", delivery)
                    return
            except Exception as error:  # noqa: BLE001 - an error of a plug-in costs only this message
                self._not_delivered(order, repr(error), Delivery.DOUBTFUL)
                return
            with self._changed:
                if self._closing is None:
                    self._changed.wait_for(lambda: self._closing is not None, _PAUSES[tries - 1])

    def _ended(self, order: _Order, delivery: Delivery) -> None:
        if order.alarm is None:
            return
        with self._changed:
            self._open -= Counter([order.alarm])
            others = self._outcomes.get(order.alarm, delivery)
            self._outcomes[order.alarm] = min(delivery, others, key=_BEST_FIRST.index)
            if len(self._outcomes) > _REMEMBERED:
                del self._outcomes[next(iter(self._outcomes))]

    def _not_delivered(self, order: _Order, why: str, delivery: Delivery) -> None:
        self._ended(order, delivery)
        self._events.emit("not delivered", what=order.what, reason=why)
