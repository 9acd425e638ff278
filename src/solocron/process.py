"""A process that is a node: it runs until it is told to stop, drains, and says so with its exit code."""

from __future__ import annotations

import os
import signal
import threading
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solocron.scheduler import Scheduler

__all__ = ["run_until_signalled"]


def run_until_signalled(scheduler: Scheduler, grace: timedelta | int | float | str = "30s") -> None:
    """Start; drain at SIGTERM or the first SIGINT; a second signal ends the process at once with 130."""
    told = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if told.is_set():
            os._exit(130)
        told.set()

    numbers = (signal.SIGTERM, signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, on_signal) for number in numbers} if main else {}
    try:
        scheduler.start()
        told.wait()
        scheduler.stop(grace)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
