"""A web application with a scheduler in its lifespan, and a coroutine job that blocks the application's loop."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from solocron import AsyncRun, Scheduler, every
from solocron.testing.fleet import witness
from solocron.testing.fleet.__main__ import note_events
from solocron.testing.fleet.leash import end_with_parent


@every("1d", name="rude", retries=3)
async def rude(run: AsyncRun) -> None:
    """Block the loop until the file of its payload is there, as careless code does."""
    with witness(run):
        while not Path(run.payload).exists():
            threading.Event().wait(0.05)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with scheduler:
        yield


async def hello(request: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


def make() -> Starlette:
    """Called by uvicorn in the process of its own."""
    end_with_parent()
    if "EVENTS" in os.environ:
        note_events(scheduler, Path(os.environ["EVENTS"]))
    return Starlette(routes=[Route("/", hello)], lifespan=lifespan)


scheduler = Scheduler("memory://" if "SOLOCRON_STORE" not in os.environ else None, node="web", lease="1s")
scheduler.discover(rude)
