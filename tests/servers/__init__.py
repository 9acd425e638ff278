"""Real servers for the tests: each a private instance on a free loopback port, ended whatever happens.

    with Postgres(settings={"fsync": "off"}) as server:
        connect(server.url)

Tests take the fixtures `postgres`, `mariadb`, `redis_server`, `valkey`, `etcd`, `nats`, `zookeeper`, `dynamodb`
and `rabbitmq`, or `start_server` for one of their own with other settings. `start_pgbouncer` puts a pooler before this
worker's PostgreSQL. A class answers `binary()` with None where its server is not installed.
"""

from __future__ import annotations

from tests.servers.azurite import Azurite
from tests.servers.base import Server, ServerFailed
from tests.servers.dynamodb import DynamoDB
from tests.servers.etcd import Etcd
from tests.servers.mariadb import MariaDB
from tests.servers.mongodb import MongoDB
from tests.servers.nats import Nats
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import Postgres
from tests.servers.rabbitmq import RabbitMQ
from tests.servers.redis import Redis
from tests.servers.valkey import Valkey
from tests.servers.zookeeper import ZooKeeper

__all__ = [
    "INSTALLED",
    "OPTIONAL",
    "SERVERS",
    "Azurite",
    "DynamoDB",
    "Etcd",
    "MariaDB",
    "MongoDB",
    "Nats",
    "PgBouncer",
    "Postgres",
    "RabbitMQ",
    "Redis",
    "Server",
    "ServerFailed",
    "Valkey",
    "ZooKeeper",
]

SERVERS: dict[str, type[Server]] = {
    server.name: server for server in (Postgres, MariaDB, Redis, Valkey, Etcd, Nats, ZooKeeper, DynamoDB)
}
OPTIONAL: dict[str, type[Server]] = {MongoDB.name: MongoDB, Azurite.name: Azurite}
"""Those that are installed only when they are named, because they bring hundreds of megabytes."""
INSTALLED: dict[str, type[Server]] = SERVERS | OPTIONAL | {PgBouncer.name: PgBouncer, RabbitMQ.name: RabbitMQ}
"""With what is no store by itself: a pooler before a server, a broker."""
