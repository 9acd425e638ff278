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

__all__ = ["Bell"]

_IDLE_MOST = 4
_LOOK = 0.25
"""Seconds after which a waiting thread looks whether the store was closed."""


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

    def rang(self, number: int) -> None:
        """This client rang itself, which is no news to it; a gap before that number is."""
        with self._mutex:
            if self._last is not None and number > self._last:
                self._missed |= number > self._last + 1
                self._last = number

    def wait(self, timeout: float) -> bool:
        """True when someone else rang, or anybody for everybody, since the last wait; False after `timeout` seconds."""
        if self._process != os.getpid():
            self._begin()
        until = time.monotonic() + timeout
        connection = self._listener()
        with self._mutex:
            # A copy: several threads may wait, and each hears every ring.
            known, missed, self._missed = self._last or 0, self._missed, False
        try:
            while not missed and connection is not None and not self._closed.is_set():
                left = until - time.monotonic()
                if connection.can_read(timeout=max(0.0, min(left, _LOOK))):
                    missed = self._is_news(connection.read_response(), known)
                elif left <= 0:
                    break
            if missed:
                return True
        except (driver.RedisError, OSError):
            _discard(connection)
            connection = None
        except BaseException:
            _discard(connection)
            connection = None
            raise
        finally:
            self._keep(connection)
        self._closed.wait(max(0.0, until - time.monotonic()))
        return False

    def close(self) -> None:
        """End every wait."""
        with self._mutex:
            self._closed.set()
            self._last = None
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.disconnect()

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
