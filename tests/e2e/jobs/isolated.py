"""Jobs in processes of their own, which leave signs of life: who works past its lease can be seen."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from solocron import Run, every
from solocron.clock import SystemClock
from solocron.testing.fleet import witness

_nothing = threading.Event()
_boot = SystemClock().boot


def _live(run: Run, seconds: float | None) -> None:
    """Write the time into a file of this attempt's own, again and again, without ever asking whether to stop."""
    path = Path(os.environ["SIGNS"]) / f"{run.id} {run.attempt} {os.getpid()}"
    end = None if seconds is None else _boot() + seconds
    while end is None or _boot() < end:
        path.write_text(str(_boot()))
        _nothing.wait(0.01)


@every("1d", name="endless", run_in="process", retries=20)
def endless(run: Run) -> None:
    """The first attempt goes on for ever."""
    with witness(run):
        _live(run, None if run.attempt == 1 else 0.0)


@every("1s", name="isolated", run_in="process", retries=20, overlap="queue-all", catch_up="all")
def isolated(run: Run) -> None:
    with witness(run):
        _live(run, 0.2)


@every("2s", name="isolated-longer", run_in="process", memory="256M", retries=20, overlap="queue-all", catch_up="all")
def isolated_longer(run: Run) -> None:
    with witness(run):
        _live(run, 0.7)
