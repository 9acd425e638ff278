"""Thirty jobs, each every second: most are over at once, some take half a second, some longer than a beat."""

from __future__ import annotations

import threading

from solocron import Run, allow, every
from solocron.testing.fleet import witness

_nothing = threading.Event()


def _make(number: int, seconds: float) -> object:
    overlap = allow(32) if seconds > 1 else "queue-all"

    @every("1s", name=f"job-{number:02}", retries=20, overlap=overlap, catch_up="all")
    def body(run: Run) -> None:
        with witness(run):
            _nothing.wait(seconds)

    return body


for _number in range(30):
    globals()[f"job_{_number:02}"] = _make(_number, (0.0, 0.0, 0.05, 0.5, 1.5)[_number % 5])
