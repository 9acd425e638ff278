"""APScheduler 4 (alpha) with its SQLAlchemy data store and event broker on PostgreSQL."""

from __future__ import annotations

import asyncio

from apscheduler import AsyncScheduler
from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
from apscheduler.eventbrokers.asyncpg import AsyncpgEventBroker
from apscheduler.triggers.cron import CronTrigger
from sqlalchemy.ext.asyncio import create_async_engine

from bench.peers import body


async def main() -> None:
    asked = body.orders()
    engine = create_async_engine(asked["url"].replace("postgresql://", "postgresql+asyncpg://"))
    broker = AsyncpgEventBroker.from_async_sqla_engine(engine)
    scheduler = AsyncScheduler(SQLAlchemyDataStore(engine), broker, max_concurrent_jobs=asked["concurrency"])
    async with scheduler:
        if asked["role"] == "load":
            when = asked["when"]
            for number in range(asked["due"]):
                trigger = CronTrigger(hour=when.hour, minute=when.minute, second=when.second, timezone="UTC")
                await scheduler.add_schedule(body.async_noop, trigger, id=f"job-{number}")
            body.say(over=True)
            return
        await body.serve(scheduler.run_until_stopped())


if __name__ == "__main__":
    asyncio.run(main())
