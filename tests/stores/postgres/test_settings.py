"""Every line that `doctor` shows of PostgreSQL turns when a real server is set wrongly; nodes need few rights."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

import psycopg
import pytest

from solocron.clock import SECOND
from solocron.errors import StoreRefused
from solocron.model.change import Kind
from solocron.stores.contract import All, Check, Tier
from solocron.stores.sql import migrations
from solocron.stores.sql.postgres import PostgresStore, checks
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import get, job, log, note, put, record, session, take, write
from solocron.testing.conformance.rivals import processes
from tests.servers import Postgres
from tests.servers.base import free_port
from tests.servers.fixtures import StartServer
from tests.servers.opening import opened_as

opened_store = partial(opened_as, PostgresStore)
LINES = {
    *("version", "role", "encoding", "isolation", "synchronous_commit", "fsync", "full_page_writes", "time zone"),
    *("session", "standbys", "connections", "encryption", "rights", "schema", "clock", "wake-up"),
}
numbers = itertools.count(1)


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    schema = f"settings_{next(numbers)}"
    yield f"{postgres.url}?schema={schema}"
    with psycopg.connect(postgres.url) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def line(store: PostgresStore, name: str) -> Check:
    (found,) = [check for check in store.checks() if check.name == name]
    assert found.level == "OK" or found.remedy
    return found


def test_a_healthy_server_is_all_right(url: str) -> None:
    with opened_store(url) as store:
        found = store.checks()
        assert {check.name for check in found} == LINES
        assert {check.level for check in found} == {"OK"}
        assert store.capabilities.tier is Tier.A
        assert store.capabilities.notifies


def test_a_server_that_may_forget_commits(start_server: StartServer, caplog: pytest.LogCaptureFixture) -> None:
    weak = {"synchronous_commit": "off", "fsync": "off", "full_page_writes": "off"}
    server = start_server(Postgres, settings=weak)
    with opened_store(server.url) as store:
        for name in weak:
            assert line(store, name).level == "FAIL"
            assert f"{name} = on" in (line(store, name).remedy or "")
        assert store.capabilities.tier is Tier.B
        assert "synchronous_commit=off" in store.capabilities.why
        (warned,) = caplog.records
        assert "tier B, it may forget its last commits in a crash: synchronous_commit=off" in warned.getMessage()
    server.restart(settings={"synchronous_commit": "local", "fsync": "on", "full_page_writes": "on"})
    with opened_store(server.url) as store:
        assert line(store, "synchronous_commit").level == "WARN"
        assert store.capabilities.tier is Tier.A


def test_wrong_session_settings_of_the_server_are_ours_to_set(start_server: StartServer) -> None:
    """Zone, isolation and date style are the server's business; our instants and transactions do not care."""
    strange = {
        "timezone": "Pacific/Chatham",
        "default_transaction_isolation": "serializable",
        "datestyle": "German",
        "bytea_output": "escape",
        "standard_conforming_strings": "on",
        "statement_timeout": "1ms",
    }
    server = start_server(Postgres, settings=strange)
    with opened_store(server.url) as store:
        wall = checks.wall()
        assert abs(store.clock() - wall) < 5 * SECOND
        assert line(store, "isolation").level == "OK"
        put(store, job("j", due_at=store.clock() - SECOND))
        assert take(store, "s") == ["j"]
    with psycopg.connect(server.url, options="-c statement_timeout=0") as connection:
        connection.execute("ALTER ROLE solocron SET statement_timeout = 0")
    with opened_store(f"{server.url}?pgbouncer=1") as pooled:  # no settings of our own behind a pooler
        assert line(pooled, "isolation").level == "WARN"
        put(pooled, job("k", due_at=pooled.clock() - SECOND))
        assert take(pooled, "s") == ["k"]


def test_a_pooler_in_between_means_no_listening_and_nothing_prepared(url: str) -> None:
    with opened_store(f"{url}&pgbouncer=1") as store:
        assert line(store, "wake-up").level == "WARN"
        assert not store.capabilities.notifies
        assert store.wait(0.01) is False
        for number in range(10):
            put(store, note(Kind.KEY, f"n{number}"))
        with store.pool.link() as link:
            assert link.db.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
            assert link.db.execute("SHOW statement_timeout").fetchone() == ("0",)


def test_a_read_replica_is_refused_and_passed_over_among_several_hosts(
    start_server: StartServer, url: str, postgres: Postgres
) -> None:
    """A server that recovers forever is what a replica is to its clients."""
    server = start_server(Postgres, settings={"wal_level": "replica"})
    with opened_store(server.url):
        pass
    (server.folder / "data" / "standby.signal").touch()
    server.restart(settings={"hot_standby": "on", "primary_conninfo": ""})
    store = make_store(server.url)
    assert isinstance(store, PostgresStore)
    with pytest.raises(StoreRefused, match=r"read replica.*nothing was written\. Name the primary server"):
        store.open()
    (failed,) = store.checks()
    assert (failed.name, failed.level) == ("store", "FAIL")
    store.close()
    here = f"127.0.0.1:{postgres.port}"
    several = url.replace(here, f"127.0.0.1:{free_port()},127.0.0.1:{server.port},{here}")
    with opened_store(several) as store:  # the first does not answer, the second is a replica
        put(store, job("j"))
        assert line(store, "role").level == "OK"
    (server.folder / "data" / "standby.signal").unlink()


def test_a_database_set_to_read_only_is_refused(postgres: Postgres) -> None:
    url = postgres.fresh_url()
    with opened_store(url) as store:
        put(store, job("j"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER ROLE solocron SET default_transaction_read_only = on")
    try:
        with opened_store(url) as store, pytest.raises(StoreRefused, match="read-only"):
            put(store, job("k"))
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute("ALTER ROLE solocron RESET default_transaction_read_only")


def test_a_database_that_cannot_hold_every_name_is_refused(postgres: Postgres) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE narrow ENCODING 'LATIN1' TEMPLATE template0")
    store = make_store(postgres.url.rpartition("/")[0] + "/narrow")
    with pytest.raises(StoreRefused, match="LATIN1"):
        store.open()
    assert {check.name: check.level for check in store.checks()}["encoding"] == "FAIL"
    store.close()


@pytest.mark.parametrize(("number", "level"), [(110022, "FAIL"), (150018, "OK")])
def test_an_old_server_is_named(number: int, level: str) -> None:
    assert checks._version(number).level == level


@pytest.mark.parametrize(
    ("hosts", "encrypted", "verified", "level"),
    [("db.example:5432", False, False, "WARN"), ("db.example", True, True, "OK"), ("db.example", True, False, "WARN"),
     ("127.0.0.1:1", False, False, "OK"), ("127.0.0.1:1", True, False, "OK"), ("[::1]:1", False, False, "OK"),
     ("", False, False, "OK"), ("localhost,db.example", False, False, "WARN")],
)  # fmt: skip
def test_a_road_that_others_can_read(hosts: str, encrypted: bool, verified: bool, level: str) -> None:
    assert checks.check_encryption(hosts, encrypted, verified=verified, verify="").level == level


def test_a_wall_clock_that_is_wrong(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = checks.wall
    monkeypatch.setattr(checks, "wall", lambda: real() + 3600 * SECOND)
    with opened_store(url) as store:
        assert line(store, "clock").level == "WARN"


class TestRights:
    @pytest.fixture
    def nobody(self, postgres: Postgres) -> Iterator[tuple[str, str]]:
        """A user without any right, and the owner's URL of a database of its own."""
        url = postgres.fresh_url()
        name = f"nobody_{next(numbers)}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {name} LOGIN")
            connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        yield name, url
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY {name}")
            connection.execute(f"DROP ROLE {name}")

    def test_without_the_right_to_create_tables_it_says_what_to_run(self, nobody: tuple[str, str]) -> None:
        name, url = nobody
        store = make_store(url.replace("solocron@", f"{name}@"))
        assert isinstance(store, PostgresStore)
        with pytest.raises(StoreRefused, match="Run `solocron migrate` as a user who may"):
            store.open()
        assert line(store, "rights").level == "WARN"
        assert line(store, "schema").level == "FAIL"
        assert migrations.status(store).applied is None
        store.close()
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)

    def test_the_grants_that_we_print_are_all_that_a_node_needs(self, nobody: tuple[str, str]) -> None:
        name, url = nobody
        with psycopg.connect(url, autocommit=True) as connection:
            text = migrations.sql("postgres")
            connection.execute(text.encode())
            for grant in (each[3:] for each in text.splitlines() if each.startswith("-- GRANT") and "TO nodes" in each):
                connection.execute(grant.replace("TO nodes", f"TO {name}").encode())
        with opened_store(url.replace("solocron@", f"{name}@")) as store:
            put(store, session("s", expires_at=store.clock() + 60 * SECOND))
            put(store, job("j", due_at=store.clock() - SECOND), records=(record("j@0"),))
            assert take(store, "s", session="s") == ["j"]
            write(store, Kind.JOB, "j", lambda doc, now: None)
            assert len(log(store)) == 1
            assert store.prune(before=store.clock(), limit=10) == 1
            store.signal()
            assert store.wait(0.0) in (True, False)
            assert get(store, Kind.JOB, "j").active
            assert log(store) == ()
            assert line(store, "rights").level == "WARN"
            assert line(store, "schema").level == "OK"

    def test_a_right_that_is_missing_is_named(self, nobody: tuple[str, str]) -> None:
        name, url = nobody
        with opened_store(url):
            pass
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}")
        with opened_store(url.replace("solocron@", f"{name}@")) as store:
            assert store.read(All(Kind.JOB)) == ()
            with pytest.raises(StoreRefused, match=r"lacks a right.*nothing was written"):
                put(store, job("j"))


class TestNames:
    def test_two_prefixes_in_one_database_are_two_stores(self, postgres: Postgres) -> None:
        url = postgres.fresh_url()
        with opened_store(f"{url}?prefix=one_") as one, opened_store(f"{url}?prefix=two_&schema=apart") as two:
            put(one, job("j"))
            assert two.read(All(Kind.JOB)) == ()
            put(two, job("k"))
            assert [doc.name for doc in one.read(All(Kind.JOB))] == ["j"]
            assert one.channel != two.channel

    def test_tables_that_vanish_under_a_running_node_are_named(self, postgres: Postgres) -> None:
        url = postgres.fresh_url()
        with opened_store(url) as store:
            with psycopg.connect(url) as connection:
                connection.execute("DROP TABLE solocron_jobs CASCADE")
            with pytest.raises(StoreRefused, match="solocron migrate"):
                store.read(All(Kind.JOB))


class TestMigrations:
    def test_five_processes_may_open_an_empty_database_at_once(self, postgres: Postgres) -> None:
        url = postgres.fresh_url()

        def start(name: str) -> int:
            with opened_store(url) as store:
                put(store, note(Kind.KEY, name))
            return 1

        assert processes([lambda name=name: start(name) for name in "abcde"]) == [1] * 5
        with opened_store(url) as store:
            assert [doc.name for doc in store.read(All(Kind.KEY))] == list("abcde")

    def test_old_code_works_on_a_newer_schema_unless_that_says_no(self, postgres: Postgres) -> None:
        url = postgres.fresh_url()
        with opened_store(url), psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE solocron_meta SET value = '99' WHERE name = 'schema'")
        with opened_store(url) as store:
            put(store, job("j"))
            assert line(store, "schema").level == "WARN"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE solocron_meta SET value = '99' WHERE name = 'compatible'")
        with pytest.raises(StoreRefused, match="pip install -U solocron"), opened_store(url):
            pass
