"""A Litestar application: its lifespan starts the node, and a handler triggers a job."""

from __future__ import annotations

import os

from litestar import Litestar, get

from solocron import Scheduler

scheduler = Scheduler(lease="2s")
scheduler.logs()


@scheduler.every("1d", name="where")
def where() -> int:
    return os.getpid()


@get("/")
async def home() -> str:
    return await scheduler.aio.trigger("where")


app = Litestar([home], lifespan=[scheduler.lifespan])
