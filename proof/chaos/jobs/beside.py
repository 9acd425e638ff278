"""Four jobs every second beside each other, each long enough that a freeze meets some of them in the middle."""

from __future__ import annotations

import threading

from solocron import Run, allow, every
from solocron.testing.fleet import witness

_nothing = threading.Event()


def _make(number: int) -> object:
    @every("1s", name=f"bill-{number}", retries=20, overlap=allow(64), catch_up="all")
    def body(run: Run) -> None:
        with witness(run):
            _nothing.wait(0.6)

    return body


for _number in range(4):
    globals()[f"bill_{_number}"] = _make(_number)
