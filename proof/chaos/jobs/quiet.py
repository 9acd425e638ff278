"""Four jobs every twelve seconds: in between, the nodes do nothing but renew their leases."""

from __future__ import annotations

import threading

from solocron import Run, allow, every
from solocron.testing.fleet import witness

_nothing = threading.Event()
PERIOD = 12.0


def _make(name: str, retries: int, seconds: float) -> object:
    @every(f"{PERIOD:g}s", name=name, retries=retries, overlap=allow(8), catch_up="all")
    def body(run: Run) -> None:
        with witness(run):
            _nothing.wait(seconds)

    return body


for _seconds in (0.0, 1.0):
    globals()[f"once_{_seconds}"] = _make(f"once-{_seconds:g}s", 0, _seconds)
    globals()[f"again_{_seconds}"] = _make(f"again-{_seconds:g}s", 3, _seconds)
