"""Waits for a condition, for a bounded time; a failure says what was waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["wait_until"]

T = TypeVar("T")

_LOOK = 0.02


def wait_until(
    look: Callable[[], T | None], *, within: float, what: str | Callable[[], str], pause: float = _LOOK
) -> T:
    """Call `look` until its result is true, and return that; raise TimeoutError after `within` seconds."""
    end = time.monotonic() + within
    nothing = threading.Event()
    while True:
        if found := look():
            return found
        if time.monotonic() > end:
            raise TimeoutError(f"waited {within:g} s in vain for {what if isinstance(what, str) else what()}")
        nothing.wait(pause)
