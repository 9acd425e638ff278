"""A job in a process of its own that never ends by itself, and leaves signs of life after which it can be judged."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from solocron import Run, every
from solocron.clock import SystemClock
from solocron.testing.fleet import witness

_nothing = threading.Event()
_boot = SystemClock().boot


def live(run: Run, seconds: float | None) -> None:
    """Write the time into a file of this attempt's own, again and again, without ever asking whether to stop."""
    path = Path(os.environ["SIGNS"]) / f"{run.id} {run.attempt} {os.getpid()}"
    end = None if seconds is None else _boot() + seconds
    while end is None or _boot() < end:
        path.write_text(str(_boot()))
        _nothing.wait(0.01)


@every("1d", name="endless", run_in="process", retries=20)
def endless(run: Run) -> None:
    """The first attempt goes on forever."""
    with witness(run):
        live(run, None if run.attempt == 1 else 0.0)
