"""The fixtures: one server of each kind per test process (so per xdist worker), started when first asked for.

Private to the worker, so that a test may kill, freeze or restart it without hurting a test elsewhere. It must
leave it running; data may stay, which is why a test that needs an empty database takes `fresh_url()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Protocol, TypeVar

import pytest

from tests.required import lacks, require_program
from tests.servers import (
    Azurite,
    DynamoDB,
    Etcd,
    MariaDB,
    MongoDB,
    Nats,
    PgBouncer,
    Postgres,
    RabbitMQ,
    Redis,
    Server,
    Valkey,
    ZooKeeper,
)

S = TypeVar("S", bound=Server)


class StartServer(Protocol):
    """Starts a server of the test's own."""

    def __call__(self, kind: type[S], *, settings: Mapping[str, str] | None = None) -> S: ...


class StartPgBouncer(Protocol):
    """Starts a pooler before this worker's PostgreSQL."""

    def __call__(self, **settings: str) -> PgBouncer: ...


def require(server: type[Server]) -> None:
    """Skip the test where the server is not installed; under CI, fail."""
    if server.binary() is None:
        lacks(server.name, server.hint)


def _shared(kind: type[S]) -> Iterator[S]:
    require(kind)
    with kind(shared=True) as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """This worker's PostgreSQL."""
    yield from _shared(Postgres)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """This worker's MariaDB."""
    yield from _shared(MariaDB)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    """This worker's Redis."""
    yield from _shared(Redis)


@pytest.fixture(scope="session")
def valkey() -> Iterator[Valkey]:
    """This worker's Valkey."""
    yield from _shared(Valkey)


@pytest.fixture(scope="session")
def etcd() -> Iterator[Etcd]:
    """This worker's etcd."""
    yield from _shared(Etcd)


@pytest.fixture(scope="session")
def nats() -> Iterator[Nats]:
    """This worker's NATS."""
    yield from _shared(Nats)


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[ZooKeeper]:
    """This worker's ZooKeeper."""
    yield from _shared(ZooKeeper)


@pytest.fixture(scope="session")
def dynamodb() -> Iterator[DynamoDB]:
    """This worker's DynamoDB Local."""
    yield from _shared(DynamoDB)


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """This worker's Azurite."""
    yield from _shared(Azurite)


@pytest.fixture(scope="session")
def mongodb() -> Iterator[MongoDB]:
    """This worker's MongoDB, if there is one: it is not among the servers that every machine must have."""
    if MongoDB.binary() is None:
        pytest.skip(f"{MongoDB.name} is not installed: {MongoDB.hint}")
    with MongoDB(shared=True) as server:
        yield server


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RabbitMQ]:
    """This worker's RabbitMQ, a broker."""
    yield from _shared(RabbitMQ)


@pytest.fixture(scope="session")
def openssl() -> str:
    """Where the program is that makes certificates."""
    return require_program("openssl", "apt-get install openssl")


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    """`start_server(Redis, settings={"appendonly": "no"})`: one for this test only, ended after it."""
    with ExitStack() as stack:

        def start(kind: type[S], *, settings: Mapping[str, str] | None = None) -> S:
            require(kind)
            server = kind(settings=settings)
            stack.enter_context(server)
            return server

        yield start


@pytest.fixture
def start_pgbouncer(postgres: Postgres) -> Iterator[StartPgBouncer]:
    """`start_pgbouncer(pool_mode="session")`: a PgBouncer for this test only, ended after it."""
    require(PgBouncer)
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(PgBouncer(postgres, settings=settings))
