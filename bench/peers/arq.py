"""arq on Redis; its cron jobs live in code, so its work comes as jobs deferred to the instant."""

from __future__ import annotations

import asyncio

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func

from bench.peers import body


async def main() -> None:
    asked = body.orders()
    settings = RedisSettings.from_dsn(asked["url"])
    if asked["role"] == "load":
        pool = await create_pool(settings)
        for number in range(asked["due"]):
            await pool.enqueue_job("noop", _job_id=f"job-{number}", _defer_until=asked["when"])
        body.say(over=True)
        return
    worker = Worker(
        functions=[func(body.async_noop, name="noop")],
        redis_settings=settings,
        max_jobs=asked["concurrency"],
        handle_signals=False,
    )
    await body.serve(worker.async_run())


if __name__ == "__main__":
    asyncio.run(main())
