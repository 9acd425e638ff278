"""Fences that the target checks, keys and items inside the user's own transaction: real databases, real drivers."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from solocron import AsyncRun, Run, Scheduler, StaleFence, allow
from solocron.effects import connections
from solocron.effects.connections import adapt
from solocron.effects.guard import guard
from solocron.effects.tables import DDL
from solocron.effects.transaction import OnceInTransaction, claim_items
from solocron.errors import InvalidError
from tests.required import require_module
from tests.servers import MariaDB, Postgres
from tests.unit.effects.libraries import LIBRARIES, LONG, Connect, mysql_options, open_database, sqlalchemy_url


@pytest.fixture(params=LIBRARIES)
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connect]:
    """Opens connections of one library to one empty database, each in a transaction that its user would commit."""
    with open_database(request.param, request, tmp_path) as database:
        yield database.connect


def once(connection: Any, key: str = "receipt:42") -> OnceInTransaction:
    return OnceInTransaction(connection, key, namespace="default", run="job@1", fence=7, check=lambda: None)


def items(connection: Any, *ids: Any) -> list[Any]:
    return claim_items(connection, "invoices", ids, namespace="default", run="job@1", fence=7)


# --- on every library ------------------------------------------------------------------------------------------------


@pytest.mark.invariant("I4: a write of an earlier holder is refused and changes nothing")
def test_a_fence_below_one_that_was_seen_is_refused(connect: Connect) -> None:
    first, second = connect(), connect()
    guard(first, scope="default/job", fence=5)
    guard(first, scope="default/other", fence=9)
    first.commit()
    guard(second, scope="default/job", fence=5)
    guard(second, scope="default/job", fence=6)
    second.commit()
    with pytest.raises(StaleFence, match="fence 5 is stale, this database has seen 6"):
        guard(first, scope="default/job", fence=5)
    first.rollback()
    guard(second, scope="default/job", fence=6)
    second.rollback()


def test_a_fence_whose_transaction_was_rolled_back_was_never_seen(connect: Connect) -> None:
    first, second = connect(), connect()
    guard(first, scope="default/job", fence=5)
    first.commit()
    guard(first, scope="default/job", fence=9)
    first.rollback()
    guard(second, scope="default/job", fence=6)
    second.commit()


def test_the_key_and_the_effect_commit_together(connect: Connect) -> None:
    first, second = connect(), connect()
    with once(first) as claim:
        assert claim
    first.rollback()
    with once(second) as claim:
        assert claim
        claim.save({"sent": "ö"})
    second.commit()
    with once(first) as claim:
        assert not claim
        assert claim.value == {"sent": "ö"}
    first.rollback()


def test_a_body_that_raises_takes_its_key_back_even_if_the_caller_commits(connect: Connect) -> None:
    first = connect()
    with pytest.raises(ZeroDivisionError), once(first):
        raise ZeroDivisionError
    first.commit()
    with once(first) as claim:
        assert claim
    first.rollback()


def test_items_are_claimed_once_and_in_the_order_given(connect: Connect) -> None:
    first, second = connect(), connect()
    assert items(first, 3, 1, "2", 1) == [3, 1, "2"]
    first.commit()
    assert items(second, 1, 2, 4, 3) == [4]
    second.rollback()
    assert items(first, 4, 5) == [4, 5]
    first.commit()


def test_thousands_of_items_take_few_statements(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was one statement an item: 2,500 of them over a network of 1 ms took 2.5 s with the rows locked."""
    first, second = connect(), connect()
    assert items(first, *range(0, 2_500, 2)) == list(range(0, 2_500, 2))
    first.commit()
    played: list[str] = []
    adapted = connections.adapt

    def counting(connection: Any) -> connections.ConnectionAdapter:
        link = adapted(connection)

        def execute(sql: str, values: tuple[Any, ...]) -> Any:
            played.append(sql)
            return link.execute(sql, values)

        return replace(link, execute=execute)

    monkeypatch.setattr(connections, "adapt", counting)
    assert items(second, *range(2_500)) == list(range(1, 2_500, 2))
    second.commit()
    assert len(played) <= 45
    with once(first, "invoices/1") as claim:
        assert not claim
        assert claim.value is None
    first.rollback()


def test_an_item_is_claimed_once_also_within_one_transaction(connect: Connect) -> None:
    first = connect()
    assert items(first, 1, 2) == [1, 2]
    assert items(first, 2, 3) == [3]
    assert items(first, 1, 2, 3) == []
    first.commit()


def test_who_comes_second_waits_for_the_first_transaction(connect: Connect) -> None:
    first, second = connect(), connect()
    with once(first):
        pass
    first.rollback()  # the table is there from here on, or not: either way no caller waits for its making
    with once(first):
        pass
    first.commit()
    assert items(first, 1, 2) == [1, 2]
    got: list[list[Any]] = []
    thread = threading.Thread(target=lambda: got.append(items(second, 2, 3)))
    thread.start()
    first.commit()
    thread.join(LONG)
    second.rollback()
    assert got == [[3]]


# --- connections -----------------------------------------------------------------------------------------------------


def test_a_connection_that_commits_at_once_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        with pytest.raises(InvalidError, match="commits every statement at once"):
            guard(connection, scope="x", fence=1)
        connection.execute("BEGIN")
        guard(connection, scope="x", fence=1)
        connection.execute("COMMIT")


def test_a_psycopg_connection_that_commits_at_once_is_refused(postgres: Postgres) -> None:
    import psycopg

    with psycopg.connect(postgres.fresh_url(), autocommit=True) as connection:
        with pytest.raises(InvalidError, match="commits every statement at once"):
            guard(connection, scope="x", fence=1)
        with connection.transaction():
            guard(connection, scope="x", fence=1)


def test_a_pymysql_connection_that_commits_at_once_is_refused_and_the_table_costs_no_transaction(
    mariadb: MariaDB,
) -> None:
    import pymysql

    options = mysql_options(mariadb.fresh_url())
    with closing(pymysql.connect(**options, autocommit=True)) as connection:
        with pytest.raises(InvalidError, match="commits every statement at once"):
            guard(connection, scope="x", fence=1)
        connection.cursor().execute("CREATE TABLE books (line INT)")
        connection.begin()
        connection.cursor().execute("INSERT INTO books VALUES (1)")
        guard(connection, scope="x", fence=1)  # makes its table on the way
        connection.rollback()
        cursor = connection.cursor()
        cursor.execute("SELECT COUNT(*) FROM books")
        assert cursor.fetchone() == (0,), "the making of our table has not committed the user's transaction"


@pytest.mark.parametrize("thing", [object(), "postgresql://x", None, threading.Lock()])
def test_what_is_no_known_connection_is_refused_with_the_list_of_those_that_are(thing: object) -> None:
    with pytest.raises(InvalidError, match=r"known are psycopg, PyMySQL, sqlite3, SQLAlchemy .* and Django"):
        adapt(thing)


def test_the_tables_can_be_made_beforehand(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        for statement in DDL["sqlite"].values():
            connection.execute(statement)
        connection.commit()
        guard(connection, scope="x", fence=1)
        connection.rollback()


@pytest.mark.parametrize("bad", [1.5, None, "x" * 300])
def test_an_item_without_a_lasting_name_is_refused(bad: object, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection, pytest.raises(InvalidError):
        items(connection, bad)


# --- in runs ---------------------------------------------------------------------------------------------------------


def scheduler() -> Scheduler:
    return Scheduler("memory://", enabled=True, node="a")


def test_a_run_guards_and_claims_with_its_own_fence(tmp_path: Path) -> None:
    a, books = scheduler(), tmp_path / "books.db"

    @a.every("1h", name="bill")
    def bill(run: Run) -> list[int]:
        with closing(sqlite3.connect(books)) as connection, connection:
            run.guard(connection)
            with run.once("bill", connection=connection) as claim:
                assert claim
            claimed: list[int] = run.claim_items(connection, "invoices", [1, 2])
            return claimed

    a.tick()
    run = a.trigger("bill")
    a.tick()
    view = a.get_run(run)
    assert view.result == [1, 2], view.error
    with closing(sqlite3.connect(books)) as connection:
        assert connection.execute("SELECT scope, fence FROM solocron_guards").fetchall() == [
            ("default/bill", view.fence)
        ]
        assert connection.execute("SELECT name, run, fence FROM solocron_keys ORDER BY name").fetchall() == [
            ("default/bill", run, view.fence),
            ("default/invoices/1", run, view.fence),
            ("default/invoices/2", run, view.fence),
        ]


@pytest.mark.invariant("I19: a job that goes wrong leaves the others alone")
def test_runs_that_may_run_at_once_are_guarded_each_for_itself(tmp_path: Path) -> None:
    a, books = scheduler(), tmp_path / "books.db"

    @a.every("1h", name="bill", overlap=allow(3))
    def bill(run: Run) -> None:
        with closing(sqlite3.connect(books, timeout=LONG)) as connection, connection:
            run.guard(connection)

    a.tick()
    runs = {a.trigger("bill") for _ in range(3)}
    a.tick()
    assert {a.get_run(run).status for run in runs} == {"succeeded"}
    with closing(sqlite3.connect(books)) as connection:
        scopes = {row[0] for row in connection.execute("SELECT scope FROM solocron_guards")}
    assert scopes == {f"default/{run}" for run in runs}


def test_coroutine_jobs_guard_over_connections_of_both_colours(postgres: Postgres, tmp_path: Path) -> None:
    import psycopg

    a, url = scheduler(), postgres.fresh_url()

    @a.every("1h", name="bill")
    async def bill(run: AsyncRun) -> list[int]:
        with closing(sqlite3.connect(tmp_path / "books.db")) as plain, plain:
            await run.guard(plain)
        with psycopg.connect(url) as threaded:
            await run.guard(threaded)
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await run.guard(connection)
            async with run.once("bill", connection=connection) as claim:
                assert claim
                claim.save(1)
            return await run.claim_items(connection, "invoices", [1, 2])

    a.tick()
    run = a.trigger("bill")
    a.tick()
    assert a.get_run(run).result == [1, 2], a.get_run(run).error


def test_coroutine_jobs_guard_over_sqlalchemys_asynchronous_connections_and_sessions(postgres: Postgres) -> None:
    asyncio_ = require_module("sqlalchemy.ext.asyncio")
    a, url = scheduler(), sqlalchemy_url(postgres.fresh_url())

    @a.every("1h", name="bill")
    async def bill(run: AsyncRun) -> list[Any]:
        engine = asyncio_.create_async_engine(url)
        try:
            async with engine.connect() as connection:
                await run.guard(connection)
                async with run.once("bill", connection=connection) as claim:
                    assert claim
                    claim.save(1)
                await connection.commit()
            async with asyncio_.AsyncSession(engine) as session:
                await run.guard(session)
                async with run.once("bill", connection=session) as claim:
                    assert not claim
                claimed = await run.claim_items(session, "invoices", [1, 2])
                await session.commit()
                return [claim.value, *claimed]
        finally:
            await engine.dispose()

    @a.every("1h", name="plain")
    def plain(run: Run) -> None:
        run.guard(asyncio_.create_async_engine(url).connect())

    a.tick()
    run, refused = a.trigger("bill"), a.trigger("plain")
    a.tick()
    assert a.get_run(run).result == [1, 1, 2], a.get_run(run).error
    assert "run_sync" in str(a.get_run(refused).error), "a thread cannot await it: refused in words"


def test_a_held_lock_guards_with_its_own_fence(tmp_path: Path) -> None:
    a = scheduler()
    with closing(sqlite3.connect(tmp_path / "books.db")) as connection:
        with a.lock("door") as old:
            old.guard(connection)
            connection.commit()
        with a.lock("door") as new:
            new.guard(connection)
            connection.commit()
        with pytest.raises(StaleFence):
            guard(connection, scope="lock/default/door", fence=old.fence)
        assert new.fence > old.fence
