"""The cost of a call to this thread, whatever else is at work on the machine."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["effort"]


def effort(call: Callable[[], object], enough: float) -> float:
    """Seconds of processor time; tried again up to twice where it was too much, as a garbage collection may be."""
    least = float("inf")
    for _ in range(3):
        began = time.thread_time()
        call()
        least = min(least, time.thread_time() - began)
        if least < enough:
            break
    return least
