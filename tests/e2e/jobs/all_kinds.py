"""One job of each way in which a node calls something: plain, awaited, in a process, failing, with durable verbs."""

from __future__ import annotations

import asyncio

from solocron import AsyncRun, Backoff, Run, cron, every


@cron("* * * * * *", tz="Europe/Paris")
def plain(run: Run) -> None:
    run.progress(1, 2, "half")
    run.log.info("in a thread")


@every("1s")
def durable(run: Run) -> None:
    with run.once(run.key):
        run.step("first").call(lambda: 1)
    run.sleep("1ms")


@every("1s")
async def awaited(run: AsyncRun) -> None:
    async with run.once(run.key):
        await run.step("first").call(lambda: 1)


@every("1s", timeout="100ms")
async def too_long() -> None:
    await asyncio.sleep(60)


@every("1s", retries=1, backoff=Backoff("10ms"))
def failing() -> None:
    raise ValueError("on purpose")


@every("1s", run_in="process")
def apart() -> None:
    pass
