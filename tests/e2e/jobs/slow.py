"""Jobs that take long enough to be hurt in the middle; both may be repeated."""

from __future__ import annotations

import signal
import threading

from solocron import Run, allow, every
from solocron.testing.fleet import witness

_nothing = threading.Event()


@every("1s", name="slow", retries=20, overlap=allow(32), catch_up="all")
def slow(run: Run) -> None:
    """Takes longer than a beat and never looks whether it should stop."""
    with witness(run):
        _nothing.wait(1.5)


@every("1d", name="patient", retries=20)
def patient(run: Run) -> None:
    """Runs when triggered, until it is told to stop; looks often."""
    with witness(run):
        while run.attempt == 1:
            run.check()
            _nothing.wait(0.01)


@every("1d", name="signalling")
def signalling(run: Run) -> None:
    """Has SIGTERM delivered to its own thread, as the kernel may choose any thread of a process for it."""
    with witness(run):
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
