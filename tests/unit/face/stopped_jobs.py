"""Jobs that are stopped, or stop themselves, on a thread, an event loop and in a process of their own."""

from __future__ import annotations

import threading
from pathlib import Path

from solocron import Cancelled, LeaseLost, Run, RunStopped, TimedOut, every

FAR = "1d"
RAISED = {"Cancelled": Cancelled, "TimedOut": TimedOut, "LeaseLost": LeaseLost, "nothing": None}
_nothing = threading.Event()


@every(FAR, name="swallows", run_in="process")
def swallows(run: Run) -> None:
    swallowed = 0
    try:
        while swallowed < 20:
            Path(run.payload).touch()
            _nothing.wait(0.005)
            try:
                run.check()
            except Exception:
                swallowed += 1
    except RunStopped as error:
        print(f"swallowed {swallowed}, ended by {type(error).__name__}")  # noqa: T201 - its output is looked at
        raise


@every(FAR, name="thread")
def on_a_thread(run: Run) -> None:
    _end(run)


@every(FAR, name="loop")
async def on_a_loop(run: Run) -> None:
    _end(run)


@every(FAR, name="process", run_in="process")
def in_a_process(run: Run) -> None:
    _end(run)


def _end(run: Run) -> None:
    kind = RAISED[run.payload]
    if kind is not None:
        raise kind("of my own")
