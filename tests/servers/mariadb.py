"""A private MariaDB, as the account `mysql` when root runs the tests: the server refuses root."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.servers.base import Server

if TYPE_CHECKING:
    import pymysql

SETUP = """\
CREATE DATABASE IF NOT EXISTS solocron;
CREATE USER IF NOT EXISTS solocron@'127.0.0.1';
GRANT ALL ON *.* TO solocron@'127.0.0.1' WITH GRANT OPTION;
"""


class MariaDB(Server):
    """Durable as it comes: innodb_flush_log_at_trx_commit is 1 unless the settings say otherwise."""

    name = "mariadb"
    hint = "apt-get install mariadb-server, or put its `mariadbd` program on the PATH"
    account = "mysql"

    _numbers = itertools.count(1)

    @classmethod
    def binary(cls) -> Path | None:
        # Debian has it among the programs for administrators, which a user's PATH may leave out.
        found = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
        return Path(found) if found else None

    @property
    def url(self) -> str:
        return self._url("solocron")

    def fresh_url(self) -> str:
        database = f"fresh_{next(self._numbers)}"
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {database}")
        return self._url(database)

    def prepare(self) -> None:
        install = shutil.which("mariadb-install-db")
        assert install is not None, self.hint
        data = self.folder / "data"
        quick = ["--skip-test-db", "--auth-root-authentication-method=normal", "--skip-name-resolve"]
        self.run([install, "--no-defaults", *quick, f"--datadir={data}", f"--tmpdir={self.folder}"])
        (self.folder / "setup.sql").write_text(SETUP)

    def command(self) -> list[str]:
        settings = {
            "datadir": f"{self.folder / 'data'}",
            "tmpdir": f"{self.folder}",
            "socket": f"{self.folder / 'socket'}",
            "pid-file": f"{self.folder / 'pid'}",
            "init-file": f"{self.folder / 'setup.sql'}",
            "port": str(self.port),
            "bind-address": "127.0.0.1",
            "skip-name-resolve": "1",
            **self.settings,
        }
        program = self.binary()
        assert program is not None, self.hint
        return [str(program), "--no-defaults", *(f"--{name}={value}" for name, value in settings.items())]

    def ask(self) -> None:
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")

    def _connect(self) -> pymysql.Connection[Any]:
        import pymysql

        return pymysql.connect(
            host="127.0.0.1", port=self.port, user="solocron", database="solocron", connect_timeout=5
        )

    def _url(self, database: str) -> str:
        return f"mariadb://solocron@127.0.0.1:{self.port}/{database}"
