"""Waits for other clients' notifications: values of the key `notify`, which a commit that others must see writes too.

One thread at a time follows the stream of the key store; what it hears counts for every thread that waits.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import Any

from solocron.errors import StoreError
from solocron.stores.swap.key_store import KeyStore
from solocron.stores.waiting import AGAIN

__all__ = ["SwapNotifications"]


class SwapNotifications:
    """The place of one client in the stream, and the notifications that it has heard."""

    def __init__(self, keys: KeyStore) -> None:
        self._keys = keys
        self.begin()

    def begin(self) -> None:
        """Begin anew, as after a fork."""
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._following = False
        self._place: Any = None
        self._heard = 0
        self._seen = 0
        self._closed = False

    def open(self) -> None:
        """From here on every notification counts, whether or not a thread waits yet."""
        self._closed = False
        if self._place is None and self._keys.capabilities.notifies:
            self._place = self._keys.position()

    def nudge(self) -> None:
        """Wake the threads of this client."""
        with self._changed:
            self._heard += 1
            self._changed.notify_all()

    def close(self) -> None:
        """End every wait."""
        with self._changed:
            self._closed = True
            self._place = None
            self._seen = self._heard
            self._changed.notify_all()

    def sleep(self, seconds: float) -> bool:
        """Let time pass while the store is away; return True if this client was nudged."""
        with self._changed:
            seen = self._heard
            return self._changed.wait_for(lambda: self._heard != seen or self._closed, seconds) and not self._closed

    @property
    def closed(self) -> bool:
        return self._closed

    def wait(self, client: str, timeout: float) -> bool:
        """Return True when another client has notified since the last wait; False after `timeout` seconds."""
        until = time.monotonic() + timeout
        with self._changed:
            seen = self._seen  # a copy: several threads may wait, and each hears every notification
        while True:
            with self._changed:
                if self._heard != seen or self._closed:
                    news = self._heard != seen and not self._closed
                    self._seen = self._heard
                    return news
                left = until - time.monotonic()
                follows = not self._following and self._place is not None
                if not follows and left > 0:
                    self._changed.wait(left)
                    continue
                self._following = follows or self._following
            if follows:
                self._follow(client, max(left, 0.0))
            if left <= 0:
                with self._changed:
                    news = self._heard != seen and not self._closed
                    self._seen = self._heard
                    return news

    def _follow(self, client: str, timeout: float) -> None:
        """Read the stream until something is heard or the time is over."""
        place = self._place
        values: Sequence[str | None] = ()
        try:
            place, values = self._keys.wait(place, timeout)
        except StoreError:
            with self._changed:  # the store is away: a wake-up is a bonus, and the callers of the store will say so
                self._changed.wait(min(timeout, AGAIN))
        finally:
            with self._changed:
                self._following = False
                if self._place is not None:
                    self._place = place
                self._heard += any(value is None or value.partition(" ")[0] != client for value in values)
                self._changed.notify_all()
