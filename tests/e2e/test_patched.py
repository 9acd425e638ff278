"""Workers whose threads are greenlets: real gunicorn processes with gevent and eventlet."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from solocron import Scheduler
from solocron.testing.fleet import wait_until
from tests.servers.base import free_port

PATIENCE = 30
"""Seconds after which a test gives up on a process; nothing waits for so long unless it is broken."""
FAILED_TO_BOOT = 3
"""Gunicorn's exit code when its workers cannot start."""


class Gunicorn:
    """One worker of a class, on a store and a port of its own."""

    def __init__(self, folder: Path, kind: str, environment: dict[str, str]) -> None:
        self.url, self.port, self.said = f"sqlite:///{folder / 'store.db'}", free_port(), folder / "said"
        argv = [sys.executable, "-m", "gunicorn", "-k", kind, "-b", f"127.0.0.1:{self.port}", "--no-control-socket"]
        path = os.pathsep.join(filter(None, sys.path))
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                [*argv, "-c", "python:tests.e2e.programs.wsgi_conf", "tests.e2e.programs.wsgi:app"],
                env={"PATH": os.environ["PATH"], "PYTHONPATH": path, "SOLOCRON_STORE": self.url, **environment},
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def get(self, path: str = "/") -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        finally:
            connection.close()

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


Start = Callable[..., Gunicorn]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Gunicorn] = []

    def begin(kind: str, **environment: str) -> Gunicorn:
        started.append(Gunicorn(tmp_path, kind, environment))
        return started[-1]

    yield begin
    for server in started:
        server.end()


def test_on_gevent_a_node_works_and_warns_that_blocking_code_costs_its_lease(start: Start) -> None:
    """And so it does: the keeper is a greenlet like the handler that blocks. The fence keeps what was promised."""
    server = start("gevent")
    wait_until(lambda: "a node runs" in server.said.read_text(), within=PATIENCE, what="the node")
    assert (
        "WARNING the threads of this process are greenlets of gevent: code that blocks them" in server.said.read_text()
    )
    scheduler = Scheduler(server.url)
    try:
        assert scheduler.wait(scheduler.trigger("hello"), "20s").result == "hello"
        assert server.get("/1.5") == b"served"
        wait_until(lambda: "can no longer prove its lease" in server.said.read_text(), within=PATIENCE, what="the loss")
        assert scheduler.wait(scheduler.trigger("hello"), "20s").result == "hello", "it has a new lease and goes on"
    finally:
        scheduler.stop()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 0
    assert "a node has drained [node=web clean=True]" in server.said.read_text()


@pytest.mark.parametrize(
    ("kind", "environment", "said"),
    [
        ("eventlet", {}, "eventlet has replaced the threads of this process"),
        ("gevent", {"EARLY": "1"}, "gevent has replaced the threads of this process after Solocron was imported"),
    ],
    ids=["eventlet", "gevent, patched later"],
)
def test_a_node_that_would_freeze_its_worker_is_refused(
    start: Start, kind: str, environment: dict[str, str], said: str
) -> None:
    """The first run used to be the last thing that the worker did: nothing was served, renewed or logged any more."""
    server = start(kind, **environment)
    wait_until(lambda: said in server.said.read_text(), within=PATIENCE, what=lambda: server.said.read_text())
    assert "othing was started" in server.said.read_text()
    assert server.process.wait(PATIENCE) == FAILED_TO_BOOT
    assert "a node runs" not in server.said.read_text()
