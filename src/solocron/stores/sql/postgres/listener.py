"""Listen for NOTIFY on a connection of its own. A wake-up is a bonus: a waiting node looks again after a while anyway.

A connection that broke is made anew while a node waits: a server that comes back is heard half a second later.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import psycopg

from solocron.errors import StoreError, StoreUnavailable
from solocron.stores.sql.postgres.link import PostgresLink
from solocron.stores.sql.postgres.session import Road
from solocron.stores.stock import bequeath

__all__ = ["Listener"]

_AGAIN = 0.5
"""Seconds after which a server that could not be heard is tried again."""


class Listener:
    """Used by one waiting thread at a time."""

    def __init__(self, connect: Callable[[], PostgresLink], channel: str, sender: str) -> None:
        self._connect = connect
        self._channel = channel
        self._sender = sender
        self._link: PostgresLink | None = None
        self._mutex = threading.Lock()

    def wait(self, timeout: float, *, listen: bool) -> bool:
        """Return whether another client has notified; True also after the connection was made anew."""
        end = time.monotonic() + timeout
        if not listen:
            time.sleep(timeout)
            return False
        while True:
            with self._mutex:
                try:
                    return self._listen_until(end)
                except (psycopg.Error, StoreError, OSError):
                    self._drop()
                except BaseException:
                    self._drop()
                    raise
            left = end - time.monotonic()
            time.sleep(max(0.0, min(left, _AGAIN)))
            if left <= _AGAIN:
                return False

    def close(self) -> None:
        with self._mutex:
            self._drop()

    def forked(self) -> None:
        """In the child of a fork, leave the parent's connection alone."""
        bequeath(self._link)
        self._link = None
        self._mutex = threading.Lock()

    def _listen_until(self, end: float) -> bool:
        if self._link is None:
            link = self._link = self._connect()
            if link.road is Road.TRANSACTION:
                raise StoreUnavailable("a pooler that shares sessions passes no notification on")
            link.execute(f'LISTEN "{self._channel}"')
            return True  # what was sent before LISTEN is lost: look
        while True:
            left = max(0.0, end - time.monotonic())
            self._link.db.patience = left + 5
            for notification in self._link.db.notifies(timeout=left, stop_after=1):
                if notification.payload != self._sender:
                    return True
            if time.monotonic() >= end:
                return False

    def _drop(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()
