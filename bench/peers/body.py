"""The body that all peers run, and the words that a process speaks with the benchmark."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

STAMPS: list[float] = []


def noop(*_: Any, **__: Any) -> None:
    """Notes when it ran."""
    STAMPS.append(time.time())


async def async_noop(*_: Any, **__: Any) -> None:
    """The same for those that run coroutines."""
    STAMPS.append(time.time())


def orders() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(sys.argv[1])
    found["when"] = datetime.fromtimestamp(found["instant"], UTC)
    return found


def say(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def watch(over: Callable[[], object]) -> None:
    """Say how many bodies have run until a line comes in, then call `over`."""

    def tell() -> None:
        told = 0
        while not ended.wait(0.05):
            if len(STAMPS) != told:
                told = len(STAMPS)
                say(finished=told)

    def hear() -> None:
        sys.stdin.readline()
        ended.set()
        over()

    ended = threading.Event()
    threading.Thread(target=tell, daemon=True).start()
    threading.Thread(target=hear, daemon=True).start()
    say(ready=True)


def last_words() -> None:
    say(stamps=STAMPS, finished=len(STAMPS), over=True)


async def serve(work: Awaitable[Any]) -> None:
    """Run a worker's coroutine until a line comes in."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    ended = asyncio.Event()
    watch(lambda: loop.call_soon_threadsafe(ended.set))
    waiting = asyncio.ensure_future(ended.wait())
    await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
    if task.done() and not ended.is_set():
        task.result()
        raise RuntimeError("the worker ended by itself")
    last_words()
    sys.stdout.flush()
    import os

    os._exit(0)  # how politely a peer shuts down is not measured
