"""Twenty jobs of every kind: over at once, longer than a beat, longer than the lease, awaited, failing, with steps.

All but `once` may be repeated, and none may be skipped. `rude`, `patient` and `crowding` are there to be triggered.
There are two releases of this module: in the newer one `changing` has another schedule, and there is one job more.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading

from solocron import AsyncRun, Backoff, Run, allow, every
from solocron.testing.fleet import witness

_nothing = threading.Event()
RETRIES = 100
QUICKLY = Backoff("100ms", factor=1.5, cap="1s")
YEAR = "365d"
RELEASE = "CHAOS_RELEASE"
"""The environment variable that says which release this is."""
NEWER = os.environ.get(RELEASE) == "2"


def _make(number: int, seconds: float, period: str) -> object:
    @every(
        period,
        name=f"plain-{number:02}",
        retries=RETRIES,
        backoff=QUICKLY,
        overlap=allow(32) if seconds > 1 else "queue-all",
        catch_up="all",
    )
    def body(run: Run) -> None:
        with witness(run):
            _nothing.wait(seconds)

    return body


for _number in range(12):
    globals()[f"plain_{_number:02}"] = _make(_number, (0.0, 0.05, 0.4, 1.5)[_number % 4], "1s")


@every("3s", name="long", retries=RETRIES, backoff=QUICKLY, overlap=allow(32), catch_up="all")
def long(run: Run) -> None:
    """Takes longer than the lease, and never looks whether it should stop."""
    with witness(run):
        _nothing.wait(4.0)


@every("1s", name="awaited", retries=RETRIES, backoff=QUICKLY, overlap=allow(32), catch_up="all")
async def awaited(run: AsyncRun) -> None:
    with witness(run):
        await asyncio.sleep(0.3)


@every("2s", name="flaky", retries=RETRIES, backoff=QUICKLY, overlap="queue-all", catch_up="all")
def flaky(run: Run) -> None:
    """Fails the first time, every time."""
    with witness(run):
        if run.attempt == 1:
            raise ConnectionError("the mail server hung up")


@every("2s", name="stepping", retries=RETRIES, backoff=QUICKLY, overlap=allow(32), catch_up="all")
def stepping(run: Run) -> None:
    """Saves what it did, twice, and does an effect under a key."""
    with witness(run):
        run.step("first").call(_nothing.wait, 0.05)
        run.step("second").call(_nothing.wait, 0.05)
        with run.once(run.key, on_uncertain="repeat", wait="10s") as claim:
            if claim:
                claim.save("done")


@every("2s", name="impatient", retries=RETRIES, backoff=QUICKLY, overlap=allow(32), catch_up="all")
async def impatient(run: AsyncRun) -> None:
    """Gives up on its own store calls at any await, and goes on."""
    with witness(run):
        for number in range(4):
            try:
                async with asyncio.timeout(random.uniform(0, 0.03)):
                    await run.step(f"part-{number}").call(asyncio.sleep, 0)
            except TimeoutError:
                continue


@every("1s", name="once", retries=0, overlap=allow(32), catch_up="all")
def once(run: Run) -> None:
    """At most once: where its node dies, it is lost and never repeated."""
    with witness(run):
        _nothing.wait(0.2)


@every("1500ms" if NEWER else "2s", name="changing", retries=RETRIES, backoff=QUICKLY, catch_up="all")
def changing(run: Run) -> None:
    with witness(run):
        pass


if NEWER:

    @every("1s", name="added", retries=RETRIES, backoff=QUICKLY, overlap="queue-all", catch_up="all")
    def added(run: Run) -> None:
        with witness(run):
            pass


@every(YEAR, name="rude", retries=RETRIES, backoff=QUICKLY, overlap=allow(8))
async def rude(run: AsyncRun) -> None:
    """Blocks the event loop for as many seconds as its payload says."""
    with witness(run):
        _nothing.wait(run.payload or 0)


@every(YEAR, name="patient", retries=0, overlap=allow(8))
async def patient(run: AsyncRun) -> None:
    """Works until it is cancelled, at an await."""
    with witness(run):
        for number in range(1000):
            await run.step(f"part-{number}").call(asyncio.sleep, 0.01)


@every(YEAR, name="crowding", retries=RETRIES, backoff=QUICKLY, overlap=allow(64))
def crowding(run: Run) -> None:
    """Many of these at once take every place that a node has."""
    with witness(run):
        _nothing.wait(1.0)
