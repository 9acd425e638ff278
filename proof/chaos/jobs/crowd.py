"""Two hundred jobs, each every second: most over at once, some long enough to be hurt in the middle."""

from __future__ import annotations

import threading

from solocron import Backoff, Run, allow, every
from solocron.testing.fleet import witness

_nothing = threading.Event()
JOBS = 200
QUICKLY = Backoff("100ms", factor=1.5, cap="1s")


def _make(number: int, seconds: float) -> object:
    @every(
        "1s",
        name=f"job-{number:03}",
        retries=100,
        backoff=QUICKLY,
        overlap=allow(64) if seconds > 1 else "queue-all",
        catch_up="all",
    )
    def body(run: Run) -> None:
        with witness(run):
            if seconds:
                _nothing.wait(seconds)

    return body


for _number in range(JOBS):
    globals()[f"job_{_number:03}"] = _make(_number, {7: 0.5, 19: 1.5}.get(_number % 20, 0.0))
