"""`Scheduler.run_forever`: a process that is a node until a signal stops it."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler

__all__ = ["run_until_signalled", "settle_memory"]

_LOOK = 0.5
_YOUNG = 10_000
"""Allocations between two passes of the garbage collector over young objects; Python's default is 700 to 2,000."""
_SAME_REQUEST = 0.1
"""Seconds within which a second SIGTERM is the same request: `timeout` and some supervisors signal both the process
and its group."""


def run_until_signalled(scheduler: Scheduler, grace: timedelta | int | float | str | None = None) -> None:
    """Start; drain at SIGTERM or the first SIGINT; a second signal ends the process at once with exit code 130."""
    signalled = threading.Event()
    first = 0.0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal first
        repeated = number == signal.SIGTERM and time.monotonic() - first < _SAME_REQUEST
        if signalled.is_set() and not repeated:
            os._exit(130)
        first = first or time.monotonic()
        signalled.set()

    numbers = (signal.SIGTERM, signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, on_signal) for number in numbers} if main else {}
    settle_memory()
    try:
        scheduler.start()
        # Handlers run on the main thread only, and a signal that the kernel hands to another thread, as it does right
        # after a thaw, does not end the main thread's waiting: it has to wake up by itself.
        while not signalled.wait(_LOOK):
            pass
        scheduler.stop(grace)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def settle_memory() -> None:
    """Tune the garbage collector of a process that runs only a node: it need not search long-lived objects.

    A burst makes thousands of short-lived objects, none of them in a cycle; with Python's own thresholds a tenth of a
    node's time goes into the search. Higher thresholds, or none, that the program has set are kept.
    """
    young, *older = gc.get_threshold()
    if 0 < young < _YOUNG:
        gc.set_threshold(_YOUNG, *older)
    gc.collect()
    gc.freeze()
