"""Procrastinate on PostgreSQL; its periodic tasks live in code, so its work comes as jobs deferred to the instant."""

from __future__ import annotations

import asyncio

from procrastinate import App, PsycopgConnector

from bench.peers import body


async def main() -> None:
    asked = body.orders()
    app = App(connector=PsycopgConnector(conninfo=asked["url"]))
    task = app.task(name="noop")(body.async_noop)
    async with app.open_async():
        if asked["role"] == "load":
            await app.schema_manager.apply_schema_async()
            await task.configure(schedule_at=asked["when"]).batch_defer_async(*({} for _ in range(asked["due"])))
            body.say(over=True)
            return
        await body.serve(app.run_worker_async(concurrency=asked["concurrency"], install_signal_handlers=False))


if __name__ == "__main__":
    asyncio.run(main())
