"""A private PostgreSQL, as the account `postgres` when root runs the tests: the server refuses root."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import signal
from pathlib import Path
from typing import Any

from tests.servers.base import Server

_IPC_RMID = 0


class Postgres(Server):
    """Durable as it comes: fsync and synchronous_commit are on unless the settings say otherwise."""

    name = "postgres"
    hint = "apt-get install postgresql, or put the folder of its `postgres` program on the PATH"
    account = "postgres"
    stop_signal = signal.SIGINT  # "fast": do not wait for clients
    end_signal = signal.SIGQUIT  # "immediate": as a crash, but gives its shared memory back

    _numbers = itertools.count(1)

    @classmethod
    def binary(cls) -> Path | None:
        found = shutil.which("postgres")
        if found:
            return Path(found).resolve()
        # Debian keeps each version in a folder of its own, off the PATH.
        versions = Path("/usr/lib/postgresql").glob("*/bin/postgres")
        return max(versions, key=lambda path: int(path.parts[-3]), default=None)

    @property
    def url(self) -> str:
        return self._url("postgres")

    def fresh_url(self) -> str:
        import psycopg

        database = f"fresh_{next(self._numbers)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {database}")
        return self._url(database)

    def prepare(self) -> None:
        initdb = self.program("initdb")
        how = ["--auth=trust", "--no-sync", "--username=solocron", "--encoding=UTF8", "--locale=C"]
        self.run([str(initdb), *how, "--pgdata", str(self.folder / "data")])

    def command(self) -> list[str]:
        where = ["-D", str(self.folder / "data"), "-p", str(self.port), "-k", str(self.folder)]
        settings = {"listen_addresses": "127.0.0.1"} | self.settings
        return [str(self._program()), *where, *(f"--{name}={value}" for name, value in settings.items())]

    def ask(self) -> None:
        import psycopg

        with psycopg.connect(self.url, connect_timeout=5) as connection:
            connection.execute("SELECT 1")

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Carry out one statement in a transaction of its own; the rows that it returns, if it does."""
        import psycopg

        with psycopg.connect(self.url, connect_timeout=5, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def copy_to(self, folder: Path, *, owner: Server | None = None, follow: bool = False) -> None:
        """Copy the running server's data, file by file; `follow`: for a standby. The files are the `owner`'s."""
        where = ["--host=127.0.0.1", f"--port={self.port}", "--username=solocron", f"--pgdata={folder}"]
        how = ["--checkpoint=fast", "--wal-method=stream", "--no-sync", *(["--write-recovery-conf"] if follow else [])]
        (owner or self).run([str(self.program("pg_basebackup")), *where, *how])

    def program(self, name: str) -> Path:
        """Another program of this server's version."""
        return self._program().with_name(name)

    def forget(self) -> None:
        """After kill -9 its piece of System V shared memory stays, and the machine has only so many."""
        try:
            _, number = (self.folder / "data" / "postmaster.pid").read_text().splitlines()[6].split()
        except (OSError, IndexError, ValueError):
            return  # it has cleaned up, or never came so far
        ctypes.CDLL(None).shmctl(int(number), _IPC_RMID, None)

    def _program(self) -> Path:
        found = self.binary()
        assert found is not None, self.hint
        return found

    def _url(self, database: str) -> str:
        return f"postgresql://solocron@127.0.0.1:{self.port}/{database}"
