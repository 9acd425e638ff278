"""Docket on Redis; its work comes as tasks added for the instant."""

from __future__ import annotations

import asyncio

from docket import Docket, Worker

from bench.peers import body


async def noop() -> None:
    await body.async_noop()


async def main() -> None:
    asked = body.orders()
    async with Docket(name="bench", url=asked["url"]) as docket:
        docket.register(noop)
        if asked["role"] == "load":
            for number in range(asked["due"]):
                await docket.add(noop, when=asked["when"], key=f"job-{number}")()
            body.say(over=True)
            return
        async with Worker(docket, concurrency=asked["concurrency"]) as worker:
            await body.serve(worker.run_forever())


if __name__ == "__main__":
    asyncio.run(main())
