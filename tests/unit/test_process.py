"""A process that is a node: its signals and its memory."""

from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from solocron.process import draining_block, settle_memory, stop_signals, wait_for


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_what_is_there_to_stay_is_not_searched_for_garbage() -> None:
    gc.set_threshold(700, 10, 10)
    settle_memory()
    assert gc.get_freeze_count() > 10_000
    assert gc.get_threshold() == (10_000, 10, 10)


@pytest.mark.parametrize("own", [(0, 10, 10), (50_000, 5, 5)])
def test_thresholds_of_ones_own_stay(own: tuple[int, int, int]) -> None:
    gc.set_threshold(*own)
    settle_memory()
    assert gc.get_threshold() == own


def test_garbage_that_comes_later_is_still_found() -> None:
    settle_memory()
    cycle: list[object] = []
    cycle.append(cycle)
    del cycle
    assert gc.collect() > 0


def test_the_first_signal_is_a_request_and_handlers_are_put_back() -> None:
    before, calls = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)], list[str]()
    with stop_signals(lambda: calls.append("drain")) as signalled:
        assert not signalled.is_set()
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)  # of the group, right after: the same request
        wait_for(signalled)
    assert calls == ["drain"]
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_a_second_signal_ends_the_process_at_once() -> None:
    look = (
        "import signal; from solocron.process import stop_signals\n"
        "with stop_signals():\n"
        "    signal.raise_signal(signal.SIGTERM); print('asked', flush=True); signal.raise_signal(signal.SIGINT)\n"
        "    print('never')\n"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "asked\n", "")


def test_on_a_thread_that_can_have_no_handlers_the_program_keeps_its_own() -> None:
    seen: list[bool] = []

    def look() -> None:
        with stop_signals() as signalled:
            seen.append(signalled.is_set())

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [False]
    assert signal.getsignal(signal.SIGTERM) == before


SERVER = """
import asyncio, signal, sys
from solocron.process import draining_block

async def drain():
    print("drains", flush=True)
    if "while-it-drains" in sys.argv:
        signal.raise_signal(signal.SIGTERM)
    for _ in range(100):  # the loop turns many times
        await asyncio.sleep(0)
    print("has drained", flush=True)

async def serve():
    async with draining_block(drain):
        if "before" in sys.argv:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(0)
        if "for-ever" in sys.argv:
            await asyncio.Event().wait()

if "handled" in sys.argv:
    signal.signal(signal.SIGTERM, handler := lambda number, frame: print("handled", flush=True))
else:
    handler = signal.SIG_DFL
asyncio.run(serve())
assert signal.getsignal(signal.SIGTERM) is handler
print("ended", flush=True)
"""


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        (["before", "for-ever"], -signal.SIGTERM, ["drains", "has drained"]),
        (["before"], 0, ["drains", "has drained", "ended"]),
        (["while-it-drains"], 0, ["drains", "has drained", "ended"]),
        (["before", "while-it-drains", "for-ever"], -signal.SIGTERM, ["drains", "has drained"]),
        (["handled", "before"], 0, ["handled", "drains", "has drained", "ended"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
def test_a_sigterm_that_no_server_handles_does_not_cut_a_drain_off(how: list[str], code: int, said: list[str]) -> None:
    """It ends the process after the drain, unless the server, which leaves the block, is about to do so."""
    command = [sys.executable, "-c", SERVER, *how]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (code, said, "")


TWO = """
import asyncio, signal
from solocron.process import draining_block

async def drain(name, turns):
    for _ in range(turns):
        await asyncio.sleep(0)
    print(name, "has drained", flush=True)

async def serve():
    async with draining_block(lambda: drain("first", 1)):
        async with draining_block(lambda: drain("second", 100)):
            signal.raise_signal(signal.SIGTERM)
            await asyncio.Event().wait()

asyncio.run(serve())
"""


def test_a_sigterm_waits_for_the_drains_of_every_block() -> None:
    """A program with two schedulers, such as of two namespaces: the first to have drained does not end the other."""
    done = subprocess.run([sys.executable, "-c", TWO], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.splitlines() == ["first has drained", "second has drained"]
    assert (done.returncode, done.stderr) == (-signal.SIGTERM, "")


def test_on_a_thread_the_block_drains_at_its_end_only() -> None:
    said: list[str] = []

    async def drain() -> None:
        said.append("drained")

    async def serve() -> None:
        async with draining_block(drain):
            said.append(f"{signal.getsignal(signal.SIGTERM) == before}")

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    thread.join()
    assert said == ["True", "drained"]
