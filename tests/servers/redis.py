"""A private Redis that keeps every write it has acknowledged, unless the settings say otherwise."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tests.servers.base import Server

if TYPE_CHECKING:
    import redis

DATABASES = 64


class Redis(Server):
    """Append-only file, synced with every write, nothing evicted: what a store must demand."""

    name = "redis"
    hint = "apt-get install redis-server, or put its `redis-server` program on the PATH"
    scheme: ClassVar[str] = "redis"

    _numbers = itertools.cycle(range(1, DATABASES))

    @classmethod
    def binary(cls) -> Path | None:
        found = shutil.which("redis-server")
        return Path(found) if found else None

    @property
    def url(self) -> str:
        return self._url(0)

    def fresh_url(self) -> str:
        """One of the numbered databases, emptied; after 63 of them the first comes again."""
        number = next(self._numbers)
        with self._connect(number) as client:
            client.flushdb()
        return self._url(number)

    def command(self) -> list[str]:
        settings = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(self.folder),
            "databases": str(DATABASES),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
            **self.settings,
        }
        program = self.binary()
        assert program is not None, self.hint
        return [str(program), *(word for name, value in settings.items() for word in (f"--{name}", value))]

    def ask(self) -> None:
        with self._connect(0) as client:
            client.ping()

    def _connect(self, number: int) -> redis.Redis:
        import redis

        return redis.Redis.from_url(
            self._url(number).replace(self.scheme, "redis", 1), socket_connect_timeout=5, socket_timeout=5
        )

    def _url(self, number: int) -> str:
        password = self.settings.get("requirepass")
        return f"{self.scheme}://{f':{password}@' if password else ''}127.0.0.1:{self.port}/{number}"
