"""The jobs of the demo: fast, slow, awaited, failing, on an object. All may be repeated, none may be skipped."""

from __future__ import annotations

import asyncio
import threading

from solocron import AsyncRun, Backoff, Run, allow, cron, every
from solocron.testing.fleet import witness

_nothing = threading.Event()


@every("1s", name="ping", retries=5, overlap="queue-all", catch_up="all")
def ping(run: Run) -> None:
    """End at once."""
    with witness(run):
        pass


@cron("* * * * * *", name="receipts", retries=5, overlap="queue-all", catch_up="all")
def receipts(run: Run) -> None:
    """Work a little, by a cron expression with seconds."""
    with witness(run):
        _nothing.wait(0.2)


@every("1s", name="digest", retries=5, overlap=allow(32), catch_up="all")
async def digest(run: AsyncRun) -> None:
    """Run as a coroutine."""
    with witness(run):
        await asyncio.sleep(0.4)


@every("2s", name="flaky", retries=5, backoff=Backoff("300ms"), overlap="queue-all", catch_up="all")
def flaky(run: Run) -> None:
    """Fail the first attempt of every run."""
    with witness(run):
        if run.attempt == 1:
            raise ConnectionError("the mail server hung up")


@every("2s", name="report", retries=5, overlap=allow(32), catch_up="all")
def report(run: Run) -> None:
    """Run longer than a beat without checking for a stop request: only the fence protects its effects."""
    with witness(run):
        _nothing.wait(3.0)
