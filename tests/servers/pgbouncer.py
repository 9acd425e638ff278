"""A private PgBouncer before a PostgreSQL of the tests, as the account `postgres` when root runs them."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

from tests.servers.base import Server
from tests.servers.postgres import Postgres


class PgBouncer(Server):
    """Shares connections to `behind` among its clients; `settings` such as pool_mode are PgBouncer's own."""

    name = "pgbouncer"
    hint = "apt-get install pgbouncer, or put its `pgbouncer` program on the PATH"
    account = "postgres"
    stop_signal = signal.SIGINT

    def __init__(self, behind: Postgres, *, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(settings=settings)
        self.behind = behind

    @classmethod
    def binary(cls) -> Path | None:
        # Debian has it among the programs for administrators, which a user's PATH may leave out.
        found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
        return Path(found) if found else None

    @property
    def url(self) -> str:
        return self.before(self.behind.url)

    def fresh_url(self) -> str:
        return self.before(self.behind.fresh_url())

    def before(self, url: str) -> str:
        """A URL of the server behind it, through the pooler."""
        return url.replace(f":{self.behind.port}/", f":{self.port}/")

    def command(self) -> list[str]:
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(self.port),
            "unix_socket_dir": "",
            "auth_type": "any",
            "pool_mode": "transaction",
            **self.settings,
        }
        file = self.folder / "pgbouncer.ini"
        behind = f"* = host=127.0.0.1 port={self.behind.port} user=solocron"
        lines = ["[databases]", behind, "[pgbouncer]", *(f"{name} = {value}" for name, value in settings.items())]
        file.write_text("\n".join(lines) + "\n")
        program = self.binary()
        assert program is not None, self.hint
        return [str(program), str(file)]

    def ask(self) -> None:
        import psycopg

        with psycopg.connect(self.url, connect_timeout=5) as connection:
            connection.execute("SELECT 1")
