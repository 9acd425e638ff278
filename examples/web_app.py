"""A web application with a scheduler in its lifespan; every replica of it may run the same.

    uvicorn examples.web_app:app
    curl localhost:8000/runs
    curl -X POST localhost:8000/refresh

The coroutine job runs on the application's own loop. Whatever blocks that loop cannot cost the process its lease:
renewals come from a thread of their own. The handlers use `scheduler.aio`, so that no call blocks the loop.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from solocron import AsyncRun, Scheduler

scheduler = Scheduler(os.environ.get("SOLOCRON_STORE", "sqlite:///jobs.db"))
cache: dict[str, str] = {}


@scheduler.every("1s", retries=1)
async def refresh(run: AsyncRun) -> None:
    cache["refreshed"] = f"{run.slot:%H:%M:%S} by {run.node}"


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with scheduler:  # starts with the application, drains with it
        yield


async def runs(request: Request) -> JSONResponse:
    found = await scheduler.aio.runs(limit=20)
    return JSONResponse([{"run": run.run, "slot": str(run.slot), "status": run.status} for run in found])


async def refresh_now(request: Request) -> JSONResponse:
    run = await scheduler.aio.trigger("refresh")
    view = await scheduler.aio.wait(run, "10s")
    return JSONResponse({"run": run, "status": view.status, **cache})


app = Starlette(
    routes=[Route("/runs", runs), Route("/refresh", refresh_now, methods=["POST"])],
    lifespan=lifespan,
)
