"""Wait for notifications of a store that may be away meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from solocron.errors import StoreError

__all__ = ["AGAIN", "Sleeper", "wait_when_open"]

AGAIN = 0.5
"""Seconds after which a store that was away is asked again."""


class Sleeper(Protocol):
    """The notifications of one client, as far as waiting without a store needs them."""

    @property
    def closed(self) -> bool: ...

    def sleep(self, seconds: float, /) -> bool:
        """Let time pass; return True if this client was nudged."""


def wait_when_open(
    open_store: Callable[[], None], notifications: Sleeper, listen: Callable[[float], bool], timeout: float
) -> bool:
    """Open the store, again and again while it is away, then listen; return whether there was news in time.

    An outage is not raised here: the callers that need the store will say that it is away.
    """
    until = time.monotonic() + timeout
    while True:
        left = until - time.monotonic()
        try:
            open_store()
        except StoreError:
            if left <= 0:
                return False
            if notifications.sleep(min(left, AGAIN)):
                return True
            if notifications.closed:
                return False
        else:
            return listen(max(left, 0.0))
