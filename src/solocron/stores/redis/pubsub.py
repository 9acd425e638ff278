"""Waits for notifications of a namespace on connections of its own; without them it is only a slower poll.

Every notification has a number. A listener that connects, or connects again, compares it with the last one that this
client knows of, so that one that fell into a gap is noticed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import redis.exceptions as driver

from solocron.errors import StoreError
from solocron.stores.redis.link import RedisLink
from solocron.stores.waiting import AGAIN

__all__ = ["Notifications"]

_IDLE_MOST = 4
_LOOK = 0.25
"""Seconds after which a waiting thread looks whether the store was closed."""


class Notifications:
    """The last notification that this client knows of, and the connections that listen while a thread waits."""

    def __init__(self, link: RedisLink, channel: str, last: Callable[[], int]) -> None:
        self._link = link
        self._channel = channel
        self._number = last
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._mutex = threading.Lock()
        self._closed = threading.Event()
        self._nudged = threading.Event()
        self._idle: list[Any] = []
        self._last: int | None = None
        self._missed = False

    def open(self) -> None:
        """From here on every notification counts, whether or not a thread listens yet."""
        if self._process != os.getpid():
            self._begin()
        self._closed.clear()
        if self._last is None:
            self._last = self._number()

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def nudge(self) -> None:
        """Wake the threads of this process that wait and cannot listen."""
        self._nudged.set()

    def sent(self, number: int) -> None:
        """Count our own notification, so that `wait()` in this process ignores it; a gap before that number counts."""
        if self._process != os.getpid():
            self._begin()
        with self._mutex:
            if self._last is not None and number > self._last:
                self._missed |= number > self._last + 1
                self._last = number

    def wait(self, timeout: float) -> bool:
        """Return True when another client notified since the last wait; False after `timeout` seconds."""
        if self._process != os.getpid():
            self._begin()
        until = time.monotonic() + timeout
        while True:
            observed = self._listen(until)
            left = until - time.monotonic()
            if observed is not None or left <= 0 or self._closed.is_set():
                return bool(observed)
            if self.sleep(min(left, AGAIN)):
                return True

    def _listen(self, until: float) -> bool | None:
        """Return whether there was news until then; None where notifications cannot be received."""
        connection = self._listener()
        with self._mutex:
            # A copy: several threads may wait, and each observes every notification.
            known, news, self._missed = self._last or 0, self._missed, False
        try:
            while not news and connection is not None and not self._closed.is_set():
                left = until - time.monotonic()
                if connection.can_read(timeout=max(0.0, min(left, _LOOK))):
                    news = self._is_news(connection.read_response(), known)
                elif left <= 0:
                    break
        except (driver.RedisError, OSError):
            _discard(connection)
            connection = None
        except BaseException:
            _discard(connection)
            raise
        self._keep(connection)
        return None if connection is None and not news else news

    def sleep(self, left: float) -> bool:
        """Let the time pass without notifications, or the caller would ask a dead server in a tight loop."""
        self._nudged.clear()
        return self._nudged.wait(max(0.0, left)) and not self._closed.is_set()

    def close(self) -> None:
        """End every wait."""
        if self._process != os.getpid():
            self._begin()
        with self._mutex:
            self._closed.set()
            self._nudged.set()
            self._last = None
            idle, self._idle = self._idle, []
        for connection in idle:
            _discard(connection)

    def _listener(self) -> Any:
        """Return a subscribed connection, or None where there is none to be had."""
        with self._mutex:
            if self._idle:
                return self._idle.pop()
        connection: Any = None
        try:
            connection = self._link.new_connection()
            connection.send_command("SUBSCRIBE", self._channel)
            connection.read_response()
            number = self._number()
        except (driver.RedisError, OSError, StoreError):
            _discard(connection)
            return None
        with self._mutex:
            self._missed |= self._last is not None and number != self._last
            self._last = number
        return connection

    def _keep(self, connection: Any) -> None:
        with self._mutex:
            keep = connection is not None and not self._closed.is_set() and len(self._idle) < _IDLE_MOST
            if keep:
                self._idle.append(connection)
        if not keep:
            _discard(connection)

    def _is_news(self, message: Any, known: int) -> bool:
        kind, _, text = message
        if kind != b"message":
            return False
        client, number = text.decode().split(" ")
        with self._mutex:
            self._last = max(self._last or 0, int(number))
        return int(number) > known and not client.startswith(f"{self._link.client}.")


def _discard(connection: Any) -> None:
    if connection is not None:
        connection.disconnect()
