"""The stores of a benchmark: private servers with their default durability, one empty database for each measurement."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.processes import wait_until
from tests.servers import INSTALLED, Server

if TYPE_CHECKING:
    import redis

__all__ = ["STORES", "SWAP", "Servers"]

STORES = ("postgres", "redis", "sqlite", "mariadb")
SWAP = ("etcd", "nats", "zookeeper", "dynamodb", "mongodb", "azurite")
"""Stores of ordered keys, measured when they are named, and by the scenario `swap`."""


class Servers:
    """Starts what is asked for, once; `fresh` is the URL of an empty database."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._running: dict[str, Server] = {}
        self._files = 0

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def server(self, store: str) -> Server:
        """The running server of a store."""
        found = self._running.get(store)
        if found is None:
            found = self._stack.enter_context(self._make(store))
            self._running[store] = found
        return found

    def fresh(self, store: str) -> str:
        """The URL of an empty database; of Redis, all that were handed out before are emptied too."""
        if store == "sqlite":
            self._files += 1
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", dir=self._folder))
            return f"sqlite:///{folder}/store-{self._files}.db"
        server = self.server(store)
        if store == "redis":
            _forget(server.url)
        return server.fresh_url()

    def version(self, store: str) -> str:
        """Return the name and version of the server, in its own words."""
        if store == "sqlite":
            import sqlite3

            return f"SQLite {sqlite3.sqlite_version}"
        program = INSTALLED[store].binary()
        if program is None:
            raise RuntimeError(f"{store} is not installed: {INSTALLED[store].hint}")
        if store in SWAP:  # programs of Java and JavaScript have no such option
            return f"{store} {self.server(store).version()}"
        said = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=True)
        return said.stdout.strip().splitlines()[0]

    def _make(self, store: str) -> Server:
        kind = INSTALLED[store]
        if kind.binary() is None:
            raise RuntimeError(f"{store} is not installed: {kind.hint}")
        if store == "postgres":
            # Everything else as it comes: fsync and synchronous_commit are on.
            return kind(settings={"shared_preload_libraries": "pg_stat_statements", "max_connections": "200"})
        if store == "redis":
            # An append-only file as `doctor` demands, synced as often as Redis does by default.
            return kind(settings={"appendfsync": "everysec"})
        return kind()

    @staticmethod
    def is_installed(store: str) -> bool:
        return INSTALLED[store].binary() is not None


def _forget(url: str) -> None:
    """Empty the server and its append-only file: else it rewrites the leftovers of one measurement during the next."""
    import redis

    with redis.Redis.from_url(url) as client:
        client.flushall()
        client.bgrewriteaof()
        wait_until(lambda: not _is_rewriting(client), 60, "the append-only file is rewritten")


def _is_rewriting(client: redis.Redis) -> bool:
    said: Any = client.info("persistence")
    return bool(said["aof_rewrite_in_progress"] or said["aof_rewrite_scheduled"])


@contextmanager
def counting_postgres(url: str) -> Iterator[dict[str, int]]:
    """Yield what the server itself counts meanwhile in this database: statements and commits, its own look included."""
    import psycopg

    def look() -> tuple[int, int]:
        calls = db.execute(
            "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid "
            "WHERE d.datname = current_database() AND s.query !~* '^(begin|commit|rollback)'"
        ).fetchone()
        db.execute("SELECT pg_stat_force_next_flush()")
        commits = db.execute(
            "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
        assert calls is not None
        assert commits is not None
        return int(calls[0]), int(commits[0])

    found: dict[str, int] = {}
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        before = look()
        yield found
        after = look()
    found |= {"statements": after[0] - before[0] - 3, "transactions": after[1] - before[1] - 3}


@contextmanager
def counting_redis(url: str) -> Iterator[dict[str, int]]:
    """Yield how many calls the server gets meanwhile, without those that scripts make inside it."""
    import redis

    def look() -> int:
        total = 0
        for name, facts in client.info("commandstats").items():
            if name.removeprefix("cmdstat_") in ("eval", "evalsha", "subscribe", "ping") or "|" in name:
                total += int(facts["calls"])
        return total

    found: dict[str, int] = {}
    with redis.Redis.from_url(url) as client:
        before = look()
        yield found
        found["calls"] = look() - before
