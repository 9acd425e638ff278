"""A server that is away at the start: commands say so and end with their code, a node waits for it and then works."""

from __future__ import annotations

import threading

import pytest

from solocron import Run, Scheduler
from solocron.cli import main
from solocron.events import Event
from tests.servers import MariaDB, Postgres, Redis, Server, Valkey
from tests.servers.fixtures import StartServer

LONG = 60.0


@pytest.mark.parametrize("kind", [Postgres, MariaDB, Redis, pytest.param(Valkey, marks=pytest.mark.long)])
def test_commands_end_with_a_code_and_a_node_is_patient(
    kind: type[Server], start_server: StartServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server = start_server(kind)
    url = server.url
    server.kill9()

    for command in ("jobs", "status", "doctor"):
        code = main([command, "--store", url])
        told = capsys.readouterr()
        assert code == (1 if command == "doctor" else 5), told
        assert "cannot be reached" in told.out + told.err or "does not answer" in told.out + told.err

    scheduler = Scheduler(url, lease="6s", enabled=True)
    ran, tried = threading.Event(), threading.Event()

    def note(event: Event) -> None:
        tried.set()

    @scheduler.every("1s", name="work")
    def work(run: Run) -> None:
        ran.set()

    scheduler.on("store error", note)
    scheduler.start()
    try:
        assert tried.wait(LONG), "it tries, and says that it could not"
        assert not ran.is_set()
        server.restart()
        assert ran.wait(LONG), "it was there all the time"
    finally:
        scheduler.stop("5s")
