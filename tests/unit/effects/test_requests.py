"""A trigger in the user's own transaction: real databases, real drivers. No commit, no run; one commit, one run."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from solocron import Run, Scheduler
from solocron.engine.namespace_gate import change_namespace
from solocron.engine.transactional_triggers import TransactionalTriggers
from solocron.errors import ConflictError, InvalidError, NotFoundError
from solocron.events import Event
from solocron.model.change import Kind
from solocron.model.documents import namespace
from solocron.model.policy import QUEUE_LIMIT
from solocron.model.transitions.commands import REMEMBERED
from solocron.runtime import Runtime, Threads
from solocron.scheduler.hooks import scheduler_on
from solocron.stores.contract import All
from tests.required import require_module
from tests.servers import MariaDB, Postgres
from tests.unit.effects.libraries import LIBRARIES, LONG, Database, mysql_options, open_database, sqlalchemy_url

SERVERS = ("psycopg", "pymysql")


@pytest.fixture(params=LIBRARIES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    with open_database(request.param, request, tmp_path) as made:
        yield made


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """The databases in which several transactions may write at once."""
    with open_database(request.param, request, tmp_path) as made:
        yield made


@pytest.fixture(params=("sqlite3", *SERVERS))
def driver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """One library for each kind of store."""
    with open_database(request.param, request, tmp_path) as made:
        yield made


class House:
    """A scheduler whose one job notes what it was handed."""

    def __init__(self, url: str, *, node: str = "a", runtime: Runtime | None = None, **options: Any) -> None:
        self.scheduler = scheduler_on(runtime or Threads(), url, enabled=True, node=node, **options)
        self.ran: list[Any] = []
        self.scheduler.every("1d", name="mail", overlap="queue-all")(self.mail)

    def mail(self, run: Run) -> None:
        self.ran.append(run.payload)

    def tick(self) -> list[Any]:
        """One pass; everything that has run so far."""
        self.scheduler.tick()
        return self.ran

    def requests(self) -> int:
        return len(self.scheduler.open().store.read(All(Kind.REQUEST)))


@pytest.fixture
def make_house() -> Iterator[Any]:
    made: list[House] = []

    def make(url: str, **options: Any) -> House:
        made.append(House(url, **options))
        made[-1].tick()  # the job is known from here on
        return made[-1]

    yield make
    for house in made:
        house.scheduler.stop("1s")


# --- on every library ------------------------------------------------------------------------------------------------


def test_no_commit_no_run_and_one_commit_one_run(database: Database, make_house: Any) -> None:
    house, connection = make_house(database.url), database.connect()
    run = house.scheduler.trigger("mail", {"to": "ö"}, connection=connection)
    if not database.url.startswith("sqlite"):  # there no other client can write while a transaction is open
        assert house.tick() == []
    with pytest.raises(NotFoundError):
        house.scheduler.get_run(run)
    connection.commit()
    assert house.scheduler.get_run(run).status == "waiting"
    assert house.tick() == [{"to": "ö"}]
    assert house.scheduler.get_run(run).status == "succeeded"
    assert house.tick() == [{"to": "ö"}]
    assert house.requests() == 0


def test_what_a_backup_brings_back_is_decided_by_restored(driver: Database, make_house: Any) -> None:
    """The request became a run after the backup was made, and nothing in the backup says so: the run came again."""
    house, connection = make_house(driver.url), driver.connect()
    run = house.scheduler.trigger("mail", 1, connection=connection)
    connection.commit()
    client = house.scheduler.open()
    identity = client.store.identity()
    change_namespace(
        client.store, lambda doc, now: namespace.close(doc, identity=identity, known=0, token="t", now=now)
    )
    assert house.tick() == []
    assert house.requests() == 1, "no node decides while the namespace is closed"
    client.restored()
    assert house.requests() == 0
    assert house.tick() == []
    view = house.scheduler.get_run(run)
    assert (str(view.status), view.reason) == ("skipped", "the store was restored from a backup")


def test_a_rollback_leaves_nothing(database: Database, make_house: Any) -> None:
    house, connection = make_house(database.url), database.connect()
    house.scheduler.trigger("mail", 1, connection=connection)
    connection.rollback()
    assert house.tick() == []
    assert house.requests() == 0


@pytest.mark.invariant("I13: a repeated request has no second effect")
def test_the_same_key_is_one_run_within_a_transaction_across_transactions_and_without_one(
    database: Database, make_house: Any
) -> None:
    house, connection = make_house(database.url), database.connect()
    trigger = house.scheduler.trigger
    runs = {trigger("mail", n, key="order-7", connection=connection) for n in (1, 2)}
    connection.commit()
    assert house.tick() == [1]
    runs |= {trigger("mail", 3, key="order-7", connection=connection)}
    connection.commit()
    assert house.tick() == [1]
    runs |= {trigger("mail", 4, key="order-7")}
    assert house.tick() == [1]
    assert len(runs) == 1
    assert house.requests() == 0


def test_runs_wait_in_the_order_in_which_one_program_asked(database: Database, make_house: Any) -> None:
    house, connection = make_house(database.url), database.connect()
    for number in range(5):
        house.scheduler.trigger("mail", number, connection=connection)
    connection.commit()
    assert house.tick() == [0, 1, 2, 3, 4]


# --- beside running nodes --------------------------------------------------------------------------------------------


def test_a_running_node_hears_of_the_commit(driver: Database, make_house: Any) -> None:
    house, connection = make_house(driver.url), driver.connect()
    with house.scheduler:
        run = house.scheduler.trigger("mail", 1, connection=connection)
        connection.commit()
        assert house.scheduler.wait(run, "20s").status == "succeeded"


def test_two_open_transactions_do_not_wait_for_each_other_even_with_one_key(server: Database, make_house: Any) -> None:
    house, first, second = make_house(server.url), server.connect(), server.connect()
    trigger = house.scheduler.trigger
    runs = [trigger("mail", n, connection=connection) for n, connection in ((1, first), (2, second))]
    keyed = {trigger("mail", "once", key="k", connection=connection) for connection in (first, second)}
    second.commit()
    first.commit()
    house.tick()
    assert sorted(map(str, house.ran)) == ["1", "2", "once"]
    assert len({*runs, *keyed}) == 3


@pytest.mark.invariant("I19: a job that goes wrong leaves the others alone")
def test_an_open_transaction_delays_neither_claims_nor_finishes_nor_redefinitions(
    server: Database, make_house: Any
) -> None:
    """Its only lock is on a row of its own; the job's is free."""
    house, connection = make_house(server.url), server.connect()
    begun, go = threading.Event(), threading.Event()

    @house.scheduler.every("1d", name="slow")
    def slow(run: Run) -> None:
        begun.set()
        assert go.wait(LONG)

    with house.scheduler:
        running = house.scheduler.trigger("slow")
        assert begun.wait(LONG)
        waiting = house.scheduler.trigger("slow", connection=connection)
        go.set()
        assert house.scheduler.wait(running, "20s").status == "succeeded"
        assert house.scheduler.pause("slow").paused is not None
        assert house.scheduler.resume("slow").paused is None
        again = house.scheduler.trigger("slow")
        assert house.scheduler.wait(again, "20s").status == "succeeded"
        connection.commit()
        assert house.scheduler.wait(waiting, "20s").status == "succeeded"


def test_a_caller_that_is_killed_before_its_commit_has_asked_for_nothing(driver: Database, make_house: Any) -> None:
    house = make_house(driver.url)
    if driver.url.startswith("sqlite"):
        connect = f"import sqlite3; c = sqlite3.connect({driver.url.removeprefix('sqlite:///')!r})"
    elif driver.url.startswith("postgres"):
        connect = f"import psycopg; c = psycopg.connect({driver.url!r})"
    else:
        connect = f"import pymysql; c = pymysql.connect(**{mysql_options(driver.url)!r})"
    program = f"""
        import os, signal
        from solocron import Scheduler
        {connect}
        Scheduler({driver.url!r}).trigger("mail", connection=c)
        print("asked", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.stdout, ended.returncode) == ("asked\n", -9), ended.stderr
    assert house.tick() == []
    assert house.requests() == 0


class Fragile(Threads):
    """Breaks once, where it is told to."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self.at: str | None = at

    def failpoint(self, name: str) -> None:
        if name == self.at:
            self.at = None
            raise ConnectionResetError(name)


@pytest.mark.invariant("I13: a repeated request has no second effect")
@pytest.mark.parametrize("at", ["request-held", "request-accepted"])
@pytest.mark.parametrize("key", [None, "k"])
def test_a_node_that_dies_while_it_takes_a_request_in_makes_it_neither_lost_nor_double(
    at: str, key: str | None, tmp_path: Path, make_house: Any
) -> None:
    url = f"sqlite:///{tmp_path / 'books.db'}"
    make_house(url)
    dying = House(url, node="dying", runtime=Fragile(at))
    with closing(sqlite3.connect(tmp_path / "books.db")) as connection:
        run = dying.scheduler.trigger("mail", 1, key=key, connection=connection)
        connection.commit()
    with pytest.raises(ConnectionResetError):
        dying.scheduler.tick()
    healthy = make_house(url, node="healthy")
    assert dying.ran + healthy.ran == [1]
    assert healthy.scheduler.get_run(run).status == "succeeded"
    assert healthy.requests() == 0


@pytest.mark.invariant("I13: a repeated request has no second effect")
def test_a_request_that_was_half_taken_in_is_recognised_after_the_job_has_forgotten_it(
    tmp_path: Path, make_house: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job remembers its last requests; the log remembers the rest, and the successor asks both."""
    url = f"sqlite:///{tmp_path / 'books.db'}"
    house = make_house(url)
    dying = House(url, node="dying", runtime=Fragile("request-accepted"))
    with closing(sqlite3.connect(tmp_path / "books.db")) as connection:
        dying.scheduler.trigger("mail", "once", connection=connection)
        connection.commit()
    with pytest.raises(ConnectionResetError):
        dying.scheduler.tick()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(TransactionalTriggers, "step", lambda self: None)
        for number in range(REMEMBERED + 1):
            house.scheduler.trigger("mail", number)
        house.tick()
    assert house.ran.count("once") == 1
    assert house.requests() == 1
    house.tick()
    assert house.ran.count("once") == 1
    assert house.requests() == 0
    assert house.scheduler.status().blocked == (), "the log's own keys, the second belt, were not needed"


# --- requests without a waiting caller --------------------------------------------------------------------------------


@pytest.fixture
def home(make_house: Any, tmp_path: Path) -> Iterator[tuple[House, sqlite3.Connection]]:
    house = make_house(f"sqlite:///{tmp_path / 'books.db'}")
    with closing(sqlite3.connect(tmp_path / "books.db")) as connection:
        yield house, connection


def test_a_request_for_a_job_that_was_removed_meanwhile_is_told_and_gone(home: Any) -> None:
    house, connection = home
    scheduler, dropped = house.scheduler, list[Event]()
    scheduler.on("request dropped", dropped.append)
    scheduler.add("data", "mail", "@yearly")
    run = scheduler.trigger("data", connection=connection)
    connection.commit()
    scheduler.remove("data")
    house.tick()
    assert [event.run for event in dropped] == [run]
    assert house.requests() == 0
    scheduler.add("data", "mail", "@yearly")  # another job of that name, which was not triggered
    assert house.tick() == []


@pytest.mark.invariant("I10: after an outage each slot fares as its policy promises")
def test_a_request_for_which_there_is_no_room_is_on_record_as_dropped(home: Any) -> None:
    house, connection = home
    later = house.scheduler.open().get_job("mail").next
    runs = [house.scheduler.trigger("mail", at=later, connection=connection) for _ in range(QUEUE_LIMIT + 2)]
    connection.commit()
    house.tick()
    assert house.scheduler.get_job("mail").waiting == QUEUE_LIMIT
    dropped = house.scheduler.runs("mail", status="dropped")
    assert len(dropped) == 2
    assert {view.run for view in dropped} < set(runs)
    assert house.requests() == 0


def test_the_wrong_question_is_refused_at_once_and_the_transaction_goes_on(home: Any) -> None:
    house, connection = home
    trigger = house.scheduler.trigger
    with pytest.raises(NotFoundError, match="there is no job 'mial'"):
        trigger("mial", connection=connection)
    with pytest.raises(InvalidError, match="has no time zone"):
        trigger("mail", at=__import__("datetime").datetime(2030, 1, 1), connection=connection)
    with pytest.raises(InvalidError, match="known are psycopg"):
        trigger("mail", connection=object())
    house.scheduler.add("off", "mail", "@yearly", enabled=False)
    with pytest.raises(ConflictError, match="disabled"):
        trigger("off", connection=connection)
    trigger("mail", 1, connection=connection)
    connection.commit()
    assert house.tick() == [1]


# --- whose database --------------------------------------------------------------------------------------------------


def test_a_connection_to_another_database_is_refused(driver: Database, make_house: Any, tmp_path: Path) -> None:
    house = make_house(driver.url)
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        with pytest.raises(InvalidError, match=r"Nothing was written|nothing was written"):
            house.scheduler.trigger("mail", connection=connection)
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []
    with (
        pytest.raises(InvalidError, match=r"does not lead to|sqlite database"),
        closing(sqlite3.connect(":memory:")) as one,
    ):
        house.scheduler.trigger("mail", connection=one)


def test_a_connection_to_another_postgresql_database_is_refused_and_stays_usable(
    postgres: Postgres, make_house: Any
) -> None:
    import psycopg

    house = make_house(postgres.fresh_url())
    with psycopg.connect(postgres.fresh_url()) as connection:
        with pytest.raises(InvalidError, match="does not lead to the database"):
            house.scheduler.trigger("mail", connection=connection)
        assert connection.execute("SELECT 1").fetchone() == (1,), "the transaction was not aborted"


def test_a_role_that_may_not_write_there_is_told_what_to_grant(postgres: Postgres, make_house: Any) -> None:
    import psycopg

    url = postgres.fresh_url()
    house = make_house(url)
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS shop")
        admin.execute("CREATE ROLE shop")
        with admin.transaction():
            admin.execute("SET LOCAL ROLE shop")
            with pytest.raises(InvalidError, match=r'GRANT INSERT ON "public"."solocron_documents" TO it'):
                house.scheduler.trigger("mail", connection=admin)
            assert admin.execute("SELECT 1").fetchone() == (1,)
        admin.execute("GRANT INSERT ON solocron_documents TO shop")
        with admin.transaction():
            admin.execute("SET LOCAL ROLE shop")
            house.scheduler.trigger("mail", 1, connection=admin)
        assert house.tick() == [1]
        admin.execute("DROP OWNED BY shop")
        admin.execute("DROP ROLE shop")


def test_a_search_path_of_its_own_does_not_lead_astray(postgres: Postgres, make_house: Any) -> None:
    import psycopg

    url = postgres.fresh_url()
    house = make_house(f"{url}?schema=cron&prefix=my_")
    with psycopg.connect(url, options="-c search_path=pg_catalog") as connection:
        house.scheduler.trigger("mail", 1, connection=connection)
    assert house.tick() == [1]


def test_another_database_of_the_same_mysql_server_can_take_part(mariadb: MariaDB, make_house: Any) -> None:
    """One transaction spans them there; the connection may speak any character set."""
    import pymysql

    house = make_house(mariadb.fresh_url())
    with closing(pymysql.connect(**mysql_options(mariadb.fresh_url()), charset="latin1")) as connection:
        house.scheduler.trigger("mail", "ж", connection=connection)
        connection.commit()
    assert house.tick() == ["ж"]


def test_a_connection_to_another_mysql_server_is_refused(mariadb: MariaDB, start_server: Any, make_house: Any) -> None:
    import pymysql

    house = make_house(mariadb.fresh_url())
    other = start_server(MariaDB)
    connection = closing(pymysql.connect(**mysql_options(other.fresh_url())))
    with connection as theirs, pytest.raises(InvalidError, match="does not lead to the database"):
        house.scheduler.trigger("mail", connection=theirs)


def test_a_store_outside_any_database_is_refused(tmp_path: Path) -> None:
    scheduler = Scheduler("memory://", enabled=True)
    with (
        closing(sqlite3.connect(tmp_path / "x.db")) as connection,
        pytest.raises(InvalidError, match="trigger after your"),
    ):
        scheduler.trigger("mail", connection=connection)


def test_a_connection_that_commits_at_once_is_refused(home: Any, tmp_path: Path) -> None:
    house, _ = home
    connection = closing(sqlite3.connect(tmp_path / "books.db", isolation_level=None))
    with connection as hasty, pytest.raises(InvalidError, match="commits every statement at once"):
        house.scheduler.trigger("mail", connection=hasty)


# --- awaited ---------------------------------------------------------------------------------------------------------


def test_aio_takes_connections_of_both_colours(server: Database, make_house: Any) -> None:
    house, plain = make_house(server.url), server.connect()

    async def ask() -> None:
        await house.scheduler.aio.trigger("mail", 1, connection=plain)
        plain.commit()
        await house.scheduler.aio.trigger("mail", 2)

    asyncio.run(ask())
    assert sorted(house.tick()) == [1, 2]


def test_aio_takes_awaited_psycopg_connections_which_the_plain_method_refuses(
    postgres: Postgres, make_house: Any
) -> None:
    import psycopg

    url = postgres.fresh_url()
    house = make_house(url)

    async def ask() -> None:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            with pytest.raises(InvalidError, match="must be awaited"):
                house.scheduler.trigger("mail", connection=connection)
            await house.scheduler.aio.trigger("mail", 1, connection=connection)
            await connection.commit()
            await house.scheduler.aio.trigger("mail", 2, connection=connection)
            await connection.rollback()

    asyncio.run(ask())
    assert house.tick() == [1]


def test_aio_takes_sqlalchemys_asynchronous_connections_and_sessions(postgres: Postgres, make_house: Any) -> None:
    asyncio_ = require_module("sqlalchemy.ext.asyncio")
    url = postgres.fresh_url()
    house = make_house(url)

    async def ask() -> None:
        engine = asyncio_.create_async_engine(sqlalchemy_url(url))
        async with engine.connect() as connection:
            await house.scheduler.aio.trigger("mail", 1, connection=connection)
            await connection.commit()
        async with asyncio_.AsyncSession(engine) as session:
            with pytest.raises(InvalidError, match="run_sync"):
                house.scheduler.trigger("mail", connection=session)
            await house.scheduler.aio.trigger("mail", 2, connection=session)
            await session.commit()
            await house.scheduler.aio.trigger("mail", 3, connection=session)
            await session.rollback()
        await engine.dispose()

    asyncio.run(ask())
    assert sorted(house.tick()) == [1, 2]
