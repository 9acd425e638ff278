"""pgqueuer on PostgreSQL; its schedules live in code, so its work comes as jobs deferred to the instant."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.peers import body


async def main() -> None:
    asked = body.orders()
    driver = AsyncpgDriver(await asyncpg.connect(asked["url"]))
    if asked["role"] == "load":
        queries = Queries(driver)
        await queries.install()
        count = asked["due"]
        after = [asked["when"] - datetime.now(UTC)] * count
        await queries.enqueue(["noop"] * count, [None] * count, [0] * count, execute_after=after)
        body.say(over=True)
        return
    pgq = PgQueuer(driver)

    @pgq.entrypoint("noop")
    async def noop(job: Job) -> None:
        await body.async_noop()

    await body.serve(pgq.run(batch_size=min(asked["concurrency"], 100)))


if __name__ == "__main__":
    asyncio.run(main())
