"""Real servers for the tests: each a private instance on a free loopback port, ended whatever happens.

    with Postgres(settings={"fsync": "off"}) as server:
        connect(server.url)

Tests take the fixtures `postgres`, `mariadb`, `redis_server` and `valkey`, or `start_server` for one of their
own with other settings. A class answers `binary()` with None where its server is not installed.
"""

from __future__ import annotations

from tests.servers.base import Server, ServerFailed
from tests.servers.mariadb import MariaDB
from tests.servers.postgres import Postgres
from tests.servers.redis import Redis
from tests.servers.valkey import Valkey

__all__ = ["SERVERS", "MariaDB", "Postgres", "Redis", "Server", "ServerFailed", "Valkey"]

SERVERS: dict[str, type[Server]] = {server.name: server for server in (Postgres, MariaDB, Redis, Valkey)}
