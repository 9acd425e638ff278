"""Nothing runs between two requests: a timer posts to /tick, which runs what has come due since the last one.

TICK_SECRET=... SOLOCRON_STORE=... uvicorn examples.cloud_run.app:app
"""

from __future__ import annotations

import os

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from solocron import Run, Scheduler
from solocron.http_tick import TickEndpoint, signed

scheduler = Scheduler()  # $SOLOCRON_STORE


@scheduler.every("1s", catch_up="all", retries=2)
def collect(run: Run) -> str:
    """Run for every slot, also for those that passed while no instance was there."""
    return run.slot.isoformat()


async def home(request: Request) -> PlainTextResponse:
    """Answer a visitor; it starts no job."""
    return PlainTextResponse("up\n")


# On Cloud Run: verify=oidc(issuer="https://accounts.google.com", audience=URL, emails=[SERVICE_ACCOUNT])
tick = TickEndpoint(scheduler, verify=signed(os.environ["TICK_SECRET"]))
app = Starlette(routes=[Route("/", home), Mount("/tick", tick.asgi)])
