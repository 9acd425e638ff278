"""Backs a store up while nodes work on it, and puts the backup back under them, in the ways in which people do that.

A way is `open` where the restore is one atomic step for those who are connected; in the others the nodes are kept out
until it is complete, as by an operator who takes the server off the network.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar
from urllib.parse import urlsplit

from proof.chaos.places import Place
from solocron.clock import SystemClock
from solocron.stores.swap.key_store import Swapped
from solocron.stores.swap.store import SwapStore
from solocron.stores.url import make_store
from tests.servers import MariaDB, Postgres, Redis, ServerFailed

__all__ = ["SETTINGS", "VAULTS", "Vault", "vault_of"]

SETTINGS: Mapping[str, Mapping[str, str]] = {name: {"enable-debug-command": "local"} for name in ("redis", "valkey")}
"""What a server needs so that it can be restored in each of its ways."""
TRIES = 20
_boot = SystemClock().boot


class Vault(ABC):
    """Holds one backup of one store."""

    ways: ClassVar[tuple[str, ...]]
    open: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, place: Place) -> None:
        self.place = place

    takes: ClassVar[Mapping[str, float]] = {}
    """Seconds from the begin of a backup to its moment, where that is not at once."""

    @abstractmethod
    def back_up(self, way: str) -> float:
        """Keep the store as it is; the boot time of the moment that is kept: everything later will be lost."""

    @abstractmethod
    def restore(self, way: str) -> None:
        """Put back what was kept."""

    @abstractmethod
    def mark(self) -> None:
        """Write something that the restore has to take away."""

    @abstractmethod
    def marked(self) -> bool:
        """Whether it is there."""


class SqlVault(Vault):
    """The mark is a row: a dump brings back the tables that it knows, and takes no other away."""

    @abstractmethod
    def sql(self, statement: str) -> list[Any]:
        """Carry it out; the rows, if there are any."""

    def mark(self) -> None:
        self.sql("INSERT INTO chaos_mark VALUES (1)")

    def marked(self) -> bool:
        return bool(self.sql("SELECT number FROM chaos_mark"))

    def unmark(self) -> None:
        """Make room for the mark, and let it not be there; before each backup."""
        self.sql("CREATE TABLE IF NOT EXISTS chaos_mark (number integer)")
        self.sql("DELETE FROM chaos_mark")


class SqliteVault(SqlVault):
    """A copy by SQLite's own means; put in place as another file, or written into the one that is in use."""

    ways = ("rename", "overwrite")
    open = frozenset(ways)

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._file = Path(place.url.removeprefix("sqlite:///"))
        self._copy = self._file.with_name("backup.db")

    def back_up(self, way: str) -> float:
        self.unmark()
        moment = _boot()
        self._copy.unlink(missing_ok=True)
        with closing(self._connect(self._file)) as live, closing(self._connect(self._copy)) as copy:
            live.backup(copy)
        return moment

    def restore(self, way: str) -> None:
        if way == "overwrite":
            with closing(self._connect(self._copy)) as copy, closing(self._connect(self._file)) as live:
                copy.backup(live)
            return
        fresh = self._file.with_name("fresh.db")
        shutil.copyfile(self._copy, fresh)
        shutil.copymode(self._file, fresh)
        # The log of the old file first: with it the new one would be rolled forward into nonsense.
        for ending in ("-wal", "-shm"):
            Path(f"{self._file}{ending}").unlink(missing_ok=True)
        os.replace(fresh, self._file)

    def sql(self, statement: str) -> list[Any]:
        with closing(self._connect(self._file)) as db:
            return db.execute(statement).fetchall()

    def _connect(self, file: Path) -> sqlite3.Connection:
        return sqlite3.connect(file, timeout=30, isolation_level=None)


class PostgresVault(SqlVault):
    """A dump, restored in one transaction; or a copy of the data, with which the server is started again."""

    ways = ("dump", "copy")
    takes = MappingProxyType({"copy": 2.0})
    open = frozenset(("dump",))

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        assert isinstance(place.server, Postgres)
        self._server = place.server
        self._kept = self._server.folder / "backup"

    def back_up(self, way: str) -> float:
        self.unmark()
        if way == "copy":
            shutil.rmtree(self._kept, ignore_errors=True)
            self._server.copy_to(self._kept)
            return _boot()  # what was written while it was copied is in it, too
        moment = _boot()
        self._program("pg_dump", "--format=custom", f"--file={self._dump}", self.place.url)
        return moment

    def restore(self, way: str) -> None:
        if way == "dump":
            how = ["--clean", "--if-exists", "--single-transaction", f"--dbname={self.place.url}", str(self._dump)]
            # Against nodes at work it may be the victim of a deadlock: then nothing has happened yet.
            _insist(lambda: self._program("pg_restore", *how))
            return
        self._server.kill9()
        self._server.forget()
        data = self._server.folder / "data"
        shutil.rmtree(data)
        self._kept.rename(data)
        self._server.restart()

    @property
    def _dump(self) -> Path:
        return self._server.folder / "backup.dump"

    def _program(self, name: str, *arguments: str) -> None:
        self._server.run([str(self._server.program(name)), *arguments])

    def sql(self, statement: str) -> list[Any]:
        import psycopg

        with psycopg.connect(self.place.url, autocommit=True) as db:
            cursor = db.execute(statement)
            return cursor.fetchall() if cursor.description else []


class MariaDBVault(SqlVault):
    """A dump, table by table: a reader in between sees some tables of then and some of now."""

    ways = ("dump",)

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        assert isinstance(place.server, MariaDB)
        self._server = place.server
        self._database = urlsplit(place.url).path.lstrip("/")
        self._dump = self._server.folder / "backup.sql"

    def back_up(self, way: str) -> float:
        self.unmark()
        moment = _boot()
        kept = f"--result-file={self._dump}"
        self._program("mariadb-dump", "--single-transaction", kept, self._database)
        return moment

    def restore(self, way: str) -> None:
        _insist(lambda: self._program("mariadb", self._database, f"--execute=source {self._dump}"))

    def _program(self, name: str, *arguments: str) -> None:
        found = shutil.which(name)
        assert found is not None, self._server.hint
        self._server.run(
            [found, "--no-defaults", "--host=127.0.0.1", f"--port={self._server.port}", "--user=solocron", *arguments]
        )

    def sql(self, statement: str) -> list[Any]:
        import pymysql

        with (
            pymysql.connect(
                host="127.0.0.1", port=self._server.port, user="solocron", database=self._database, autocommit=True
            ) as db,
            db.cursor() as cursor,
        ):
            cursor.execute(statement)
            return list(cursor.fetchall())


class RedisVault(Vault):
    """A snapshot, loaded into the running server, or by one that is started on it without its newer file."""

    ways = ("reload", "restart")
    open = frozenset(("reload",))

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        assert isinstance(place.server, Redis)
        self._server = place.server
        self._kept = self._server.folder / "backup.rdb"

    def back_up(self, way: str) -> float:
        self._call("DEL", "chaos-mark")
        moment = _boot()
        self._call("SAVE")
        shutil.copyfile(self._snapshot, self._kept)
        return moment

    def restore(self, way: str) -> None:
        if way == "reload":
            shutil.copyfile(self._kept, self._snapshot)
            self._call("DEBUG", "RELOAD", "NOSAVE")
            return
        self._server.kill9()
        shutil.rmtree(self._server.folder / "appendonlydir")
        shutil.copyfile(self._kept, self._snapshot)
        # With an append-only file switched on it would look for that alone and find nothing.
        self._server.restart(settings={"appendonly": "no"})
        self._call("CONFIG", "SET", "appendonly", "yes")
        self._server.settings["appendonly"] = "yes"

    def mark(self) -> None:
        self._call("SET", "chaos-mark", "1")

    def marked(self) -> bool:
        return bool(self._call("EXISTS", "chaos-mark"))

    @property
    def _snapshot(self) -> Path:
        return self._server.folder / "dump.rdb"

    def _call(self, *words: str) -> Any:
        import redis

        url = self.place.url.replace("valkey://", "redis://", 1)
        with redis.Redis.from_url(url, socket_timeout=30) as client:
            return client.execute_command(*words)


class FilesVault(Vault):
    """The files of a server that is stopped meanwhile, as every key store can be backed up and restored."""

    ways = ("files",)

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        assert place.server is not None
        self._server = place.server
        self._kept = self._server.folder / "backup"

    def back_up(self, way: str) -> float:
        self._write(None)
        moment = _boot()
        self._server.kill9()
        shutil.rmtree(self._kept, ignore_errors=True)
        shutil.copytree(self._files, self._kept)
        self._server.restart()
        return moment

    def restore(self, way: str) -> None:
        self._server.kill9()
        shutil.rmtree(self._files)
        shutil.copytree(self._kept, self._files)
        self._server.restart()

    def mark(self) -> None:
        self._write("1")

    def marked(self) -> bool:
        with closing(self._store()) as store:
            store.open()
            return bool(store._keys.fetch(["mark"]).items)

    def _write(self, value: str | None) -> None:
        with closing(self._store()) as store:
            store.open()
            assert isinstance(store._keys.commit({}, {"mark": value}), Swapped)

    def _store(self) -> SwapStore:
        store = make_store(self.place.url, namespace="chaos-mark")
        assert isinstance(store, SwapStore)
        return store

    @property
    def _files(self) -> Path:
        return self._server.folder / "data"


VAULTS: Mapping[str, type[Vault]] = {
    "sqlite": SqliteVault,
    "postgres": PostgresVault,
    "mariadb": MariaDBVault,
    "redis": RedisVault,
    "valkey": RedisVault,
    "etcd": FilesVault,
    "nats": FilesVault,
    "zookeeper": FilesVault,
}
"""The vault of each store that can be backed up here."""


def vault_of(place: Place) -> Vault:
    """The vault for a store."""
    return VAULTS[place.name](place)


def _insist(call: Callable[[], None]) -> None:
    for _ in range(TRIES):
        try:
            call()
        except ServerFailed:
            continue
        return
    call()
