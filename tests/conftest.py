"""What holds for every test: it leaves nothing running, and it finds the same examples twice under CI."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

from tests.distribution import ByFile
from tests.servers import OPTIONAL, SERVERS, Server, in_memory, janitor, processes

pytest_plugins = ["pytester", "tests.servers.fixtures"]

GRACE = 5.0
"""Seconds in which what a test has told to end may end; waited only when something is still there."""

in_memory.keep_temporary_files()
# PyMySQL makes a TLS context for every connection and loads the machine's authorities into it: 48 ms of computing, more
# than most tests on MariaDB. No test trusts a public authority, whatever the environment names.
os.environ["SSL_CERT_FILE"] = os.devnull

# A shell starts what it runs in the background with SIGINT ignored, and every process of a test would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# `make test-long` runs the same properties with many more examples.
hypothesis.settings.register_profile("dev", deadline=None, max_examples=40)
hypothesis.settings.register_profile(
    "ci", parent=hypothesis.settings.get_profile("dev"), derandomize=True, database=None, print_blob=True
)
hypothesis.settings.register_profile("long", deadline=None, max_examples=1_000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests marked `long`, which take minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of each server, so that `-m postgres` finds them, and leave the long ones out unless asked for."""
    fixtures = {"redis_server": "redis"} | {name: name for name in (*SERVERS, *OPTIONAL) if name != "redis"}
    for item in items:
        asked = {fixtures[name] for name in getattr(item, "fixturenames", ()) if name in fixtures}
        params = getattr(getattr(item, "callspec", None), "params", {})
        asked |= {value for value in params.values() if isinstance(value, str) and value in (*SERVERS, *OPTIONAL)}
        for name in asked:
            item.add_marker(name)
    if not config.getoption("--long"):
        left_out = [item for item in items if item.get_closest_marker("long")]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """Give whole files to the workers, in the order of collection."""
    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test ends what it began: threads, child processes and sockets. `may_leak(reason)` is the way out."""
    threads, children, sockets = set(threading.enumerate()), _children(), processes.open_sockets()
    yield
    if request.node.get_closest_marker("may_leak"):
        return

    def left() -> list[str]:
        return [
            *(f"thread {thread.name}" for thread in set(threading.enumerate()) - threads),
            *(f"process {pid}: {processes.command(pid)}" for pid in _children() - children),
            *(f"open {name}" for name in processes.open_sockets() - sockets),
        ]

    until = time.monotonic() + GRACE
    nothing = threading.Event()
    while (rest := left()) and time.monotonic() < until:
        gc.collect()  # a socket or a pool of threads may be in a cycle, and still in use when first looked at
        nothing.wait(0.02)
    if rest:
        pytest.fail("the test left behind: " + "; ".join(rest), pytrace=False)


def _children() -> set[int]:
    """Our child processes, without the servers that several tests share and the janitor that guards them."""
    shared = {server.pid for server in Server.running if server.shared}
    return processes.children(os.getpid()) - shared - {janitor.pid()}
