"""The stores under fire: each with its server, where it has one, the disk that can be filled, and a count of calls."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.servers import INSTALLED, OPTIONAL, SERVERS, Server

__all__ = ["STORES", "Place"]

STORES = ("sqlite", *SERVERS, *OPTIONAL)
_DISK = {"sqlite": "24m", "postgres": "400m"}
"""Stores whose disk is a small one of their own, where root can mount one."""
_SETTINGS = {"postgres": {"shared_preload_libraries": "pg_stat_statements", "max_connections": "200"}}
"""Everything else as the tests' servers come: durable."""
_WHOLE_SECONDS = ("dynamodb", "azurite")
"""Stores that tell the time in whole seconds: their pages promise a takeover within the lease and two seconds."""


class Place:
    """A private store; `url` stays the same over restarts."""

    def __init__(self, name: str, *, small_disk: bool = False, settings: Mapping[str, str] | None = None) -> None:
        """`settings`: of the server, beside those that every one has."""
        self.name = name
        self._settings = {**_SETTINGS.get(name, {}), **(settings or {})}
        self.server: Server | None = None
        self.disk: Path | None = None
        self.url = ""
        self.restarts = 0
        self.calls = 0
        """Calls of clients that the server itself has counted; SQLite counts none."""
        self._small = small_disk and os.geteuid() == 0 and name in _DISK
        self._stack = ExitStack()
        self._counted: int | None = None
        self._mutex = threading.Lock()

    @property
    def margin(self) -> float:
        """Seconds beyond the lease within which a takeover is promised here."""
        return 2.0 if self.name in _WHOLE_SECONDS else 1.0

    @staticmethod
    def missing(name: str) -> str | None:
        """Return what to do where this store's server is not installed."""
        kind = INSTALLED.get(name)
        return kind.hint if kind is not None and kind.binary() is None else None

    def version(self) -> str:
        """Return the name and version of the server."""
        if self.server is None:
            return f"SQLite {sqlite3.sqlite_version}"
        return f"{type(self.server).__name__} {self.server.version()}"

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            folder = Path(tempfile.mkdtemp(prefix="solocron-chaos-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            folder.chmod(0o755)
            if self._small:
                mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK[self.name]},mode=0755", "tmpfs", str(folder)]
                subprocess.run(mount, check=True)
                stack.callback(subprocess.run, ["umount", "-l", str(folder)], check=False)
                self.disk = folder
            if self.name == "sqlite":
                self.url = f"sqlite:///{folder / 'store.db'}"
            else:
                self.server = INSTALLED[self.name](settings=self._settings, disk=self.disk)
                stack.enter_context(self.server)
                self.url = self.server.fresh_url()
            self._stack = stack.pop_all()
        self.count()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    # --- what is done to it

    def restart(self) -> None:
        """Shut it down in order, and start it again."""
        assert self.server is not None
        self.stop_counting()
        self.server.restart()
        self.restarts += 1
        self.count()

    def crash(self) -> None:
        """kill -9, and start it again."""
        assert self.server is not None
        self.stop_counting()
        self.server.kill9()
        self.server.restart()
        self.restarts += 1
        self.count()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Keep all clients from writing while the block lasts: the server is killed, the file has another owner."""
        if self.server is None:
            with closing(
                sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=30, isolation_level=None)
            ) as file:
                file.execute("BEGIN EXCLUSIVE")
                yield
                file.execute("ROLLBACK")
            return
        self.stop_counting()
        self.server.kill9()
        yield
        self.server.restart()
        self.restarts += 1
        self.count()

    def revive(self) -> None:
        """Start a server that has ended by itself, as one does whose disk is full."""
        if self.server is not None and self.server.pid is None:
            self._counted = None
            self.server.restart()
            self.restarts += 1
            self.count()

    # --- counting: a server forgets its figures when it ends, so they are taken just before

    def count(self) -> None:
        """Count from now on."""
        with self._mutex:
            self._counted = self._look()

    def stop_counting(self) -> None:
        with self._mutex:
            before, self._counted = self._counted, None
            if before is not None:
                self.calls += max(0, (self._look() or before) - before)

    def _look(self) -> int | None:
        match self.name:
            case "postgres":
                return _postgres(self.url)
            case "mariadb":
                return _mariadb(self.url)
            case "redis" | "valkey":
                return _redis(self.url)
        return None


def _postgres(url: str) -> int:
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        row = db.execute(
            "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid "
            "WHERE d.datname = current_database() AND s.query !~* '^(begin|commit|rollback|create extension)'"
        ).fetchone()
    assert row is not None
    return int(row[0])


def _mariadb(url: str) -> int:
    import pymysql

    parts = urlsplit(url)
    with pymysql.connect(host="127.0.0.1", port=parts.port or 0, user=parts.username) as db, db.cursor() as cursor:
        kinds = ("select", "insert", "update", "delete", "replace", "insert_select", "update_multi", "delete_multi")
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Com\\_%'")
        counts = {str(name).lower(): int(value) for name, value in cursor.fetchall()}
    return sum(counts.get(f"com_{kind}", 0) for kind in kinds)


def _redis(url: str) -> int:
    import redis

    total = 0
    with redis.Redis.from_url(url.replace("valkey://", "redis://", 1)) as client, suppress(redis.RedisError):
        for name, facts in client.info("commandstats").items():
            # What scripts call inside the server is not a call of a client's.
            if name.removeprefix("cmdstat_") in ("eval", "evalsha", "time"):
                total += int(facts["calls"])
    return total
