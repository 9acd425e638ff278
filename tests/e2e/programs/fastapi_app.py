"""A FastAPI application as the how-to has it: the scheduler in its lifespan, one handler for Solocron's errors."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse

from solocron import AsyncRun, Scheduler, SolocronError, given

scheduler = Scheduler(lease="2s")


def get_ledger() -> Iterator[Path]:
    yield Path(os.environ["LEDGER"])


@scheduler.every("200ms", catch_up="all")
async def beat(run: AsyncRun, *, ledger: Path = given(get_ledger)) -> None:
    with ledger.open("a") as file:
        file.write(f"{run.slot.timestamp()} {run.attempt} {os.getpid()}\n")


@scheduler.every("1d")
def broken() -> None:
    raise ValueError("no paper")


@scheduler.every("1d")
def patient() -> str:
    """End when the node has begun to drain, and not before."""
    while not scheduler.health().draining:
        threading.Event().wait(0.02)
    return "drained"


@scheduler.every("1d")
async def held(run: AsyncRun, *, ledger: Path = given(get_ledger)) -> str:
    """End when the test says so."""
    while not ledger.with_name("go").exists():
        await asyncio.sleep(0.02)
    return "not cut off"


app = FastAPI(lifespan=scheduler.lifespan)


@app.exception_handler(SolocronError)
def refuse(request: Request, error: SolocronError) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, status_code=error.status)


@app.post("/trigger/{job}")
async def trigger(job: str, request: Request, ledger: Path = Depends(get_ledger)) -> dict[str, object]:
    same = request.state.solocron is scheduler
    return {"run": await scheduler.aio.trigger(job), "state": same, "ledger": ledger.name}
