"""Ten jobs every second: without retries and with, over at once and longer than the lease. No attempt starts twice."""

from __future__ import annotations

import threading

from solocron import Backoff, Run, allow, every
from solocron.testing.fleet import witness

_nothing = threading.Event()
QUICKLY = Backoff("100ms", factor=1.5, cap="1s")
SECONDS = (0.0, 0.05, 0.4, 1.5, 4.0)


def _make(name: str, retries: int, seconds: float) -> object:
    @every("1s", name=name, retries=retries, backoff=QUICKLY, overlap=allow(64), catch_up="all")
    def body(run: Run) -> None:
        with witness(run):
            _nothing.wait(seconds)

    return body


for _seconds in SECONDS:
    globals()[f"once_{_seconds}"] = _make(f"once-{_seconds:g}s", 0, _seconds)
    globals()[f"again_{_seconds}"] = _make(f"again-{_seconds:g}s", 3, _seconds)
