"""Waits for the bell of a namespace on connections of its own; a bell that cannot be heard is only a slower poll.

Every ring has a number. A listener that connects, or connects again, compares it with the last one that this client
knows of, so that a ring that fell into a gap is noticed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import redis.exceptions as driver

from solocron.errors import StoreError
from solocron.stores.redis.link import Link

__all__ = ["AGAIN", "Bell"]

_IDLE_MOST = 4
_LOOK = 0.25
"""Seconds after which a waiting thread looks whether the store was closed."""
AGAIN = 0.5
"""Seconds after which a bell that could not be heard is tried again."""


class Bell:
    """The last ring that this client knows of, and the connections that listen while someone waits."""

    def __init__(self, link: Link, channel: str, rings: Callable[[], int]) -> None:
        self._link = link
        self._channel = channel
        self._rings = rings
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
        """From here on every ring counts, whether or not anybody listens yet."""
        if self._process != os.getpid():
            self._begin()
        self._closed.clear()
        if self._last is None:
            self._last = self._rings()

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def nudge(self) -> None:
        """Wake those who wait in this process and cannot hear the bell."""
        self._nudged.set()

    def rang(self, number: int) -> None:
        """This client rang itself, which is no news to it; a gap before that number is."""
        if self._process != os.getpid():
            self._begin()
        with self._mutex:
            if self._last is not None and number > self._last:
                self._missed |= number > self._last + 1
                self._last = number

    def wait(self, timeout: float) -> bool:
        """True when someone else rang, or anybody for everybody, since the last wait; False after `timeout` seconds."""
        if self._process != os.getpid():
            self._begin()
        until = time.monotonic() + timeout
        while True:
            heard = self._hear(until)
            left = until - time.monotonic()
            if heard is not None or left <= 0 or self._closed.is_set():
                return bool(heard)
            if self.sleep(min(left, AGAIN)):
                return True

    def _hear(self, until: float) -> bool | None:
        """Whether there was news until then; None where the bell cannot be heard."""
        connection = self._listener()
        with self._mutex:
            # A copy: several threads may wait, and each hears every ring.
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
        """The bell cannot be heard: let the time pass, or the caller would ask a dead server in a tight loop."""
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
        """A subscribed connection, or None where there is none to be had."""
        with self._mutex:
            if self._idle:
                return self._idle.pop()
        connection: Any = None
        try:
            connection = self._link.new_connection()
            connection.send_command("SUBSCRIBE", self._channel)
            connection.read_response()
            number = self._rings()
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
