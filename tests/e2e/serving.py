"""A web server as a process of its own, with everything that it starts, and a way to ask it."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from solocron.testing.fleet import wait_until
from tests.servers.base import free_port

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 30


class Served:
    """A server on a port of its own; what it said is in a file."""

    def __init__(self, command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.port, self.said_in = free_port(), folder / "said"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SOLOCRON_", "FLASK_"))}
        path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
        with self.said_in.open("wb") as said:
            self.process = subprocess.Popen(
                [word.format(port=self.port) for word in command],
                cwd=folder,
                env={**kept, "PYTHONPATH": path, **environment},
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        return self.said_in.read_text()

    def ask(self, path: str, *, method: str = "GET", **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def listens(self, path: str = "/") -> bool:
        assert self.process.poll() is None, self.said
        try:
            self.ask(path)
        except OSError:
            return False
        return True

    def refuses(self) -> bool:
        """Return whether nothing listens any more."""
        try:
            socket.create_connection(("127.0.0.1", self.port), PATIENCE).close()
        except ConnectionRefusedError:
            return True
        return False

    def stop(self) -> int:
        """Ask it to stop, and return how it ended."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def children(self) -> list[int]:
        """The processes that it has started."""
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in found.split()]


@contextmanager
def serving(*argv: str, folder: Path, **environment: str) -> Iterator[Served]:
    """Start `python -m ARGV` or the script at ARGV's path; `{port}` is its port. Kill all of it at the end."""
    program = [sys.executable] if argv[0].startswith("/") else [sys.executable, "-m"]
    with running([*program, *argv], folder, **environment) as server:
        yield server


@contextmanager
def running(command: list[str], folder: Path, **environment: str) -> Iterator[Served]:
    """Start a program that is not Python's; `{port}` is its port. Kill all of it at the end."""
    server = Served(command, folder, environment)
    try:
        wait_until(server.listens, within=PATIENCE, what=lambda: server.said)
        yield server
    finally:
        try:
            os.killpg(server.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        server.process.wait()
