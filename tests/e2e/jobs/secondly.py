"""A few jobs every second, by period and by cron expression, in zones near and far."""

from __future__ import annotations

import threading

from solocron import Run, allow, cron, every
from solocron.testing.fleet import witness

_nothing = threading.Event()


@every("1s", name="period", retries=20, overlap="queue-all", catch_up="all")
def period(run: Run) -> None:
    with witness(run):
        pass


@cron("* * * * * *", name="expression", tz="America/New_York", retries=20, overlap="queue-all", catch_up="all")
def expression(run: Run) -> None:
    with witness(run):
        pass


@every("1s", name="working", retries=20, overlap=allow(32), catch_up="all")
def working(run: Run) -> None:
    with witness(run):
        _nothing.wait(0.5)
