"""Connections of a node: few when it is idle, one for its renewals alone, and `doctor` counts those of the server.

Many namespaces in one process share them, and one that is busy, closed or forked does not disturb the others.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import pytest
import redis

from solocron import Scheduler
from solocron.errors import StoreUnavailable
from solocron.events import Event
from solocron.stores.contract import Check
from solocron.stores.redis import RedisStore
from solocron.stores.redis.wire import pack
from solocron.stores.sql.mysql import MySQLStore
from solocron.stores.sql.postgres import PostgresStore
from solocron.stores.sql.postgres.session import Road
from solocron.stores.sql.store import SqlStore
from solocron.testing.fleet import wait_until
from tests.servers import MariaDB, Postgres
from tests.servers.fixtures import StartPgBouncer, require
from tests.servers.opening import opened_as
from tests.unit.stores.sql.test_pool import in_a_fork

STORES: dict[str, type[Any]] = {"postgres": PostgresStore, "mariadb": MySQLStore, "redis_server": RedisStore}
IDLE = {"postgres": 3, "mariadb": 2, "redis_server": 2}
"""What the how-to pages state: renewals (not on Redis), everything else, and the listener (not on MariaDB)."""
TENANTS = 10
IDLE_TENANTS = {"postgres": 3 + TENANTS, "mariadb": 3, "redis_server": 1 + TENANTS}
"""The same for that many namespaces: two for renewals, one for everything else, and a listener each."""
AT_ONCE = 4
"""How many more may be there because tenants work at the same moment."""
BUSY = 8


def count_postgres(url: str) -> int:
    with psycopg.connect(url) as connection:
        here = "datname = current_database() AND pid <> pg_backend_pid()"
        row = connection.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {here}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def count_mariadb(server: MariaDB, url: str) -> int:
    with server._connect() as connection, connection.cursor() as cursor:
        where = "SELECT count(*) FROM information_schema.processlist WHERE db = %s"
        cursor.execute(where, [url.rpartition("/")[2]])
        return int(cursor.fetchone()[0])


def count_redis(url: str) -> int:
    """Connections to this database, without those of other databases of the server."""
    with closing(redis.Redis.from_url(url)) as connection:
        own = connection.client_id()
        found: Any = connection.client_list()
        database = str(connection.get_connection_kwargs()["db"])
    return sum(each["db"] == database and each["id"] != str(own) for each in found)


def count(server: Any, url: str) -> int:
    if isinstance(server, MariaDB):
        return count_mariadb(server, url)
    return count_postgres(url) if isinstance(server, Postgres) else count_redis(url)


def store_of(scheduler: Scheduler) -> SqlStore[Any]:
    store = scheduler.open().store
    assert isinstance(store, SqlStore)
    return store


def be_busy(scheduler: Scheduler) -> None:
    """As many calls at once as threads: each needs a connection."""
    barrier = threading.Barrier(BUSY)
    store: Any = scheduler.open().store

    def call(_: int) -> None:
        if isinstance(store, SqlStore):
            store.call(lambda link: barrier.wait(20))
        else:
            wire = store._link.wire()
            barrier.wait(20)
            store._link.send(wire, pack(["PING"]))

    with ThreadPoolExecutor(BUSY) as threads:
        list(threads.map(call, range(BUSY)))


@pytest.mark.parametrize("kind", IDLE)
def test_an_idle_node_has_as_few_connections_as_its_page_states(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solocron.stores.stock.IDLE_FOR", 0.1)
    server = request.getfixturevalue(kind)
    url = server.fresh_url()
    with Scheduler(url, lease="1500ms") as scheduler:
        be_busy(scheduler)
        wait_until(lambda: count(server, url) == IDLE[kind], within=20, what="the idle connections to be closed")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.long) if kind == "mariadb" else kind for kind in IDLE_TENANTS]
)
def test_many_namespaces_in_one_process_share_their_connections(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solocron.stores.stock.IDLE_FOR", 2.0)
    server = request.getfixturevalue(kind)
    url = server.fresh_url()
    with ExitStack() as running:
        for number in range(TENANTS):
            running.enter_context(Scheduler(url, namespace=f"tenant-{number}", lease="6s"))
        few = IDLE_TENANTS[kind] + AT_ONCE
        wait_until(lambda: count(server, url) <= few, within=40, what=f"at most {few} connections")
    wait_until(lambda: count(server, url) == 0, within=20, what="the last one to close everything")


@pytest.mark.parametrize("kind", IDLE_TENANTS)
def test_a_namespace_that_is_closed_leaves_the_connections_to_the_others(
    kind: str, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(kind).fresh_url()
    with ExitStack() as stack:
        one, other = (stack.enter_context(opened_as(STORES[kind], url, namespace=name)) for name in ("one", "other"))
        one.clock()
        before = other.statements.total()
        sent = one.statements.total()
        one.close()
        other.clock()
        assert other.statements.total() == before + 1, "each store counts its own statements"
        assert one.statements.total() == sent
        one.clock()  # a store that was closed opens itself again


@pytest.mark.parametrize("kind", IDLE_TENANTS)
def test_a_fork_uses_no_connection_of_its_parents_other_namespaces(kind: str, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue(kind)
    url = server.fresh_url()
    with ExitStack() as stack:
        stores = [stack.enter_context(opened_as(STORES[kind], url, namespace=name)) for name in ("one", "other")]
        for store in stores:
            store.clock()
        parents = count(server, url)

        def child() -> bool:
            before = count(server, url)
            told = [store.clock() for store in stores]
            with_own = count(server, url)
            for store in stores:
                store.close()
            return min(told) > 0 and before == parents and with_own > parents

        assert in_a_fork(child)
        wait_until(lambda: count(server, url) == parents, within=20, what="the end of the child's connections")
        assert all(store.clock() > 0 for store in stores)
        assert count(server, url) == parents, "the parent goes on with those that it had"


@pytest.fixture(scope="module")
def small() -> Iterator[Postgres]:
    """A server that soon has no connection left."""
    require(Postgres)
    with Postgres(settings={"max_connections": "14", "superuser_reserved_connections": "0"}, shared=True) as server:
        yield server


def hold_all(scheduler: Scheduler, held: ExitStack) -> None:
    """Take connections as the loops of a node do, until the server has none left."""
    while True:
        held.enter_context(store_of(scheduler).pool.link())


def test_a_node_renews_its_lease_on_a_server_that_has_no_connection_left(small: Postgres) -> None:
    """Whatever the other loops use, they cannot take the connection of the renewals."""
    renewed = threading.Semaphore(0)
    lost: list[Event] = []
    scheduler = Scheduler(small.fresh_url(), lease="3s")
    scheduler.on("session renewed", lambda event: renewed.release())
    scheduler.on("session lost", lost.append)
    with scheduler:
        for _ in range(2):
            assert renewed.acquire(timeout=20)
        with ExitStack() as held:
            with pytest.raises(StoreUnavailable, match="too many clients"):
                hold_all(scheduler, held)
            for _ in range(3):
                assert renewed.acquire(timeout=20)
    assert not lost


def connections_line(url: str) -> Check:
    scheduler = Scheduler(url)
    try:
        (found,) = [check for check in store_of(scheduler).checks() if check.name == "connections"]
    finally:
        scheduler.stop()
    return found


def test_a_tenant_that_has_taken_every_connection_costs_no_other_tenant_its_lease(small: Postgres) -> None:
    renewed = threading.Semaphore(0)
    lost: list[Event] = []
    url = small.fresh_url()
    greedy, modest = (Scheduler(url, namespace=name, lease="3s") for name in ("greedy", "modest"))
    modest.on("session renewed", lambda event: renewed.release())
    for each in (greedy, modest):
        each.on("session lost", lost.append)
    with greedy, modest:
        for _ in range(2):
            assert renewed.acquire(timeout=20)
        with ExitStack() as held:
            with pytest.raises(StoreUnavailable, match="too many clients"):
                hold_all(greedy, held)
            for _ in range(3):
                assert renewed.acquire(timeout=20)
    assert not lost


def test_a_pooler_that_one_namespace_has_found_is_known_to_the_next(start_pgbouncer: StartPgBouncer) -> None:
    """It gets connections of the first, which is how it learns that no notification will reach it."""
    url = start_pgbouncer(pool_mode="transaction").url
    with (
        opened_as(PostgresStore, url, namespace="one") as one,
        opened_as(PostgresStore, url, namespace="other") as other,
    ):
        assert other.pooled == one.pooled != ""
        assert other.road is one.road is Road.TRANSACTION
        assert not other.capabilities.notifies


def test_doctor_counts_the_connections_of_postgresql(small: Postgres) -> None:
    url = small.fresh_url()
    assert connections_line(url).level == "OK"
    with ExitStack() as held:
        others = [held.enter_context(psycopg.connect(url)) for _ in range(11)]
        wait_until(lambda: _clients(others[0]) == 11, within=20, what="the end of other connections")
        line = connections_line(url)
    assert (line.level, line.detail) == ("WARN", "12 of 14 in use")
    assert "max_connections" in (line.remedy or "")


def _clients(connection: psycopg.Connection[Any]) -> int:
    found = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
    connection.rollback()
    return int(found.fetchall()[0][0])


def test_doctor_counts_the_connections_of_mariadb(mariadb: MariaDB) -> None:
    url = mariadb.fresh_url()
    with ExitStack() as held:
        cursor = held.enter_context(mariadb._connect()).cursor()
        cursor.execute("SELECT @@global.max_connections")
        before = cursor.fetchone()[0]
        assert connections_line(url).level == "OK"
        try:
            cursor.execute("SET GLOBAL max_connections = 10")  # the least that it takes
            for _ in range(7):
                held.enter_context(mariadb._connect())
            line = connections_line(url)
        finally:
            cursor.execute("SET GLOBAL max_connections = %s", [before])
    assert line.level == "WARN"
    assert line.detail.endswith("of 10 in use")
