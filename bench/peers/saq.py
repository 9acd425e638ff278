"""SAQ on Redis; its cron jobs live in code, so its work comes as jobs scheduled for the instant."""

from __future__ import annotations

import asyncio

from saq import Queue, Worker

from bench.peers import body


async def main() -> None:
    asked = body.orders()
    queue = Queue.from_url(asked["url"])
    await queue.connect()
    if asked["role"] == "load":
        for number in range(asked["due"]):
            await queue.enqueue("noop", key=f"job-{number}", scheduled=int(asked["instant"]))
        body.say(over=True)
        return
    worker = Worker(queue, functions=[("noop", body.async_noop)], concurrency=asked["concurrency"])
    await body.serve(worker.start())


if __name__ == "__main__":
    asyncio.run(main())
