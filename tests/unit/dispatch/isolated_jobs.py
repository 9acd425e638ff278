"""Jobs for processes of their own: each shows one way in which a process can end, or one thing that a run can do."""

from __future__ import annotations

import asyncio
import ctypes
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from solocron import AsyncRun, Run, current_run, every

FAR = "1d"
_nothing = threading.Event()


def _wait_for_ever() -> None:
    _nothing.wait()


@every(FAR, name="facts", run_in="process", payload={"default": True})
def facts(run: Run) -> dict[str, Any]:
    run.progress(1, 2, "half")
    run.check()
    print("printed", run.payload)  # noqa: T201 - its output is what is looked at
    run.log.info("logged")
    return {
        "pid": os.getpid(),
        "id": run.id,
        "slot": run.slot.isoformat(),
        "attempt": run.attempt,
        "fence": run.fence,
        "key": run.key,
        "node": run.node,
        "payload": run.payload,
        "previous": None if run.previous is None else str(run.previous.status),
        "cancelled": run.cancelled,
        "stdin": sys.stdin.read(),
    }


@every(FAR, name="sharded", run_in="process", shards=("eu", "us"))
def sharded(run: Run) -> list[Any]:
    return [run.shard, run.shards == ("eu", "us")]


@every(FAR, name="coroutine", run_in="process")
async def coroutine(run: AsyncRun) -> int:
    total = 0
    async for number in run.track(range(3)):
        await asyncio.sleep(0)
        total += number
    return total


@every(FAR, name="plain-that-returns-a-coroutine", run_in="process")
def plain_that_returns_a_coroutine() -> Any:
    return _later()


@every(FAR, name="coroutine-that-returns-a-coroutine", run_in="process")
async def coroutine_that_returns_a_coroutine() -> Any:
    return _later()


async def _later() -> str:
    await asyncio.sleep(0)
    return "carried out"


@every(FAR, name="effects", run_in="process", retries=1)
def effects(run: Run) -> list[Any]:
    """With I/O: each of these is written through a connection of the child's own."""
    with run.once(f"key:{run.slot:%F}") as claim:
        if claim:
            claim.save("first")
    again = run.step("count").call(lambda: 7)
    if run.attempt == 1:
        raise RuntimeError("once more")
    return [bool(claim), again]


@every(FAR, name="step-that-is-not-called", run_in="process")
def step_that_is_not_called(run: Run) -> None:
    run.step("charge")


@every(FAR, name="ending", run_in="process")
def ending(run: Run) -> Any:
    """Ends as the payload says."""
    match run.payload:
        case "raise":
            raise ValueError("a reason of my own")
        case "exit":
            sys.exit(3)
        case "os-exit":
            os._exit(4)
        case "segfault":
            ctypes.string_at(0)
        case "no-json":
            return {1, 2}
        case "half-a-letter":
            return "\ud800"
        case "large":
            return "x" * 100_000
        case "loud":
            for number in range(50_000):
                print(f"line {number}")  # noqa: T201 - its output is what is looked at
        case "odd-bytes":
            os.write(1, b"\xff\x00 odd")
    return None


@every(FAR, name="hog", run_in="process", memory="96M", cpu=1)
def hog(run: Run) -> Any:
    if run.payload == "cores":
        return len(os.sched_getaffinity(0))
    if run.payload == "child":
        subprocess.run([sys.executable, "-c", "x = bytearray(300 << 20); import time; time.sleep(600)"], check=False)
    kept = [bytearray(8 << 20)]
    while True:
        kept.append(bytearray(8 << 20))


@every(FAR, name="family", run_in="process", timeout="5s")
def family(run: Run) -> None:
    """Never ends, and neither does what it starts; both leave their numbers in the folder of the payload."""
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(run.payload).write_text(f"{os.getpid()} {started.pid}")
    _wait_for_ever()


@every(FAR, name="stubborn", run_in="process")
def stubborn(run: Run) -> None:
    """Holds the interpreter itself for as long as it can: no thread of this process gets a turn."""
    pid = os.fork()  # a grandchild that no pipe of ours reaches
    if pid == 0:
        time.sleep(600)
    Path(run.payload).write_text(f"{os.getpid()} {pid}")
    libc = ctypes.PyDLL(None)  # PyDLL keeps the interpreter's lock while the function runs
    while True:
        libc.sleep(600)


@every(FAR, name="polite", run_in="process")
def polite(run: Run) -> str:
    """Notices that it should stop."""
    print("waiting")  # noqa: T201 - its output is what is looked at
    Path(run.payload).write_text(str(os.getpid()))
    while not run.cancelled:
        _nothing.wait(0.01)
    return "stopped by itself"


@every(FAR, name="polite-coroutine", run_in="process")
async def polite_coroutine(run: AsyncRun) -> None:
    Path(run.payload).write_text(str(os.getpid()))
    await asyncio.sleep(600)


@every(FAR, name="pool", run_in="process")
def pool(run: Run) -> list[int]:
    with multiprocessing.get_context("fork").Pool(2) as workers:
        return workers.map(abs, [-1, -2, -3])


@contextmanager
def tenant(run: Run) -> Iterator[None]:
    os.environ["TENANT"] = f"of {run.job}"
    yield


@every(FAR, name="wrapped", run_in="process")
def wrapped() -> str | None:
    return os.environ.get("TENANT")


@every(FAR, name="logging", run_in="process")
def logs_its_run() -> str:
    """Find the run without being given it."""
    run = current_run()
    assert run is not None
    return run.id
