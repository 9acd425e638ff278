"""Connections of a node: few when it is idle, one for its renewals alone, and `doctor` counts those of the server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from solocron import Scheduler
from solocron.errors import StoreUnavailable
from solocron.events import Event
from solocron.stores.contract import Check
from solocron.stores.sql.store import SqlStore
from solocron.testing.fleet import wait_until
from tests.servers import MariaDB, Postgres
from tests.servers.fixtures import require

IDLE = {"postgres": 3, "mariadb": 2}
"""What the how-to pages state: renewals, everything else, and on PostgreSQL the listener."""
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


def store_of(scheduler: Scheduler) -> SqlStore[Any]:
    store = scheduler.client.store
    assert isinstance(store, SqlStore)
    return store


def be_busy(scheduler: Scheduler) -> None:
    """As many calls at once as threads: each needs a connection."""
    barrier = threading.Barrier(BUSY)
    with ThreadPoolExecutor(BUSY) as threads:
        list(threads.map(lambda _: store_of(scheduler).call(lambda link: barrier.wait(20)), range(BUSY)))


@pytest.mark.parametrize("server", ["postgres", "mariadb"])
def test_an_idle_node_has_as_few_connections_as_its_page_states(
    server: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solocron.stores.sql.pool.IDLE_FOR", 0.1)
    found: Any = request.getfixturevalue(server)
    url = found.fresh_url()
    with Scheduler(url, lease="1500ms") as scheduler:
        be_busy(scheduler)

        def connections() -> int:
            return count_postgres(url) if server == "postgres" else count_mariadb(found, url)

        wait_until(lambda: connections() == IDLE[server], within=20, what="the idle connections to be closed")


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
