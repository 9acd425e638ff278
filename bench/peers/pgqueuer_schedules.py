"""pgqueuer on PostgreSQL with schedules: each job is a schedule in the code of every node, as its users write them."""

from __future__ import annotations

import asyncio

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from bench.peers import body


async def main() -> None:
    asked = body.orders()
    driver = AsyncpgDriver(await asyncpg.connect(asked["url"]))
    if asked["role"] == "load":
        await Queries(driver).install()
        body.say(over=True)
        return
    pgq = PgQueuer(driver)
    when = asked["when"]
    for number in range(asked["due"]):
        pgq.schedule(f"job-{number}", f"{when.minute} {when.hour} * * * {when.second}")(body.async_noop)
    await body.serve(pgq.run())


if __name__ == "__main__":
    asyncio.run(main())
