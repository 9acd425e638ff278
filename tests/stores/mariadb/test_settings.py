"""Every line that `doctor` shows of MariaDB turns when a real server is set wrongly; nodes need few rights."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pymysql
import pytest

from solocron.clock import SECOND
from solocron.errors import StoreRefused
from solocron.model.change import Kind
from solocron.stores.contract import All, Check, Tier
from solocron.stores.sql import migrations
from solocron.stores.sql.mysql import MySQLStore, checks
from solocron.stores.sql.mysql.link import MySQLLink
from solocron.stores.sql.mysql.store import is_read_only, statements, version_of
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import get, job, log, note, put, record, session, take
from solocron.testing.conformance.rivals import processes
from tests.servers import MariaDB
from tests.servers.fixtures import StartServer
from tests.servers.opening import opened_as

opened_store = partial(opened_as, MySQLStore)
LINES = {
    *("version", "role", "Galera", "innodb_flush_log_at_trx_commit", "sync_binlog", "innodb_doublewrite"),
    *("isolation", "time zone", "sql mode", "character set", "encryption", "rights", "schema", "collation", "clock"),
    *("connections", "wake-up"),
}
numbers = itertools.count(1)


def sql(url: str, *commands: str) -> list[Any]:
    """Run something as the application would."""
    parts = urlsplit(url)
    connection: pymysql.Connection[Any] = pymysql.connect(
        host="127.0.0.1", port=parts.port or 0, user=parts.username, database=parts.path[1:], autocommit=True
    )
    try:
        with connection.cursor() as cursor:
            for command in commands:
                cursor.execute(command)
            return list(cursor.fetchall())
    finally:
        connection.close()


@pytest.fixture
def url(mariadb: MariaDB) -> Iterator[str]:
    url = mariadb.fresh_url()
    yield url
    sql(mariadb.url, f"DROP DATABASE {url.rpartition('/')[2]}")


def line(store: MySQLStore, name: str) -> Check:
    (found,) = [check for check in store.checks() if check.name == name]
    assert found.level == "OK" or found.remedy
    return found


def test_a_healthy_server_is_all_right(url: str) -> None:
    with opened_store(url) as store:
        found = store.checks()
        assert {check.name for check in found} == LINES
        assert {check.level for check in found} == {"OK"}
        assert store.capabilities.tier is Tier.A


def test_a_server_that_may_forget_commits(start_server: StartServer, caplog: pytest.LogCaptureFixture) -> None:
    weak = {"innodb_flush_log_at_trx_commit": "2", "log-bin": "binlog", "sync_binlog": "0", "innodb_doublewrite": "0"}
    server = start_server(MariaDB, settings=weak)
    with opened_store(server.url) as store:
        assert line(store, "innodb_flush_log_at_trx_commit").level == "FAIL"
        assert line(store, "sync_binlog").level == "WARN"
        assert line(store, "innodb_doublewrite").level == "WARN"
        assert store.capabilities.tier is Tier.B
        (warned,) = caplog.records
        assert "tier B, it may forget its last commits in a crash: innodb_flush_log" in warned.getMessage()


def test_a_server_set_to_read_only_is_refused(start_server: StartServer) -> None:
    server = start_server(MariaDB)
    sql(server.url, "CREATE USER node@'127.0.0.1'", "GRANT ALL ON solocron.* TO node@'127.0.0.1'")
    url = server.url.replace("solocron@", "node@")
    with opened_store(url) as store:
        put(store, job("j"))
        sql(server.url, "SET GLOBAL read_only = 1")
        with pytest.raises(StoreRefused, match=r"read-only.*nothing was written.*Name the primary"):
            put(store, job("k"))
        assert line(store, "role").level == "FAIL"
    with pytest.raises(StoreRefused, match="Name the primary"), opened_store(url):
        pass


def test_wrong_settings_of_the_server_are_ours_to_set(start_server: StartServer) -> None:
    """Zone, mode, collation, isolation and the counting of rows are the server's business; a store does not care."""
    strange = {
        "default-time-zone": "+05:45",
        "sql_mode": "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,ORACLE",
        "character-set-server": "latin1",
        "collation-server": "latin1_general_ci",
        "transaction-isolation": "SERIALIZABLE",
        "lower_case_table_names": "1",
        "sysdate-is-now": "1",
    }
    server = start_server(MariaDB, settings=strange)
    with opened_store(server.url) as store:
        assert {check.level for check in store.checks()} == {"OK"}
        assert abs(store.clock() - checks.wall()) < 5 * SECOND
        names = ["job", "Job", "job ", "jöb", "東京 🎉", 'it\'s \\ "quoted"']
        put(store, *(job(name, due_at=store.clock() - SECOND, payload=names) for name in names))
        assert sorted(take(store, "s")) == sorted(names)
        assert get(store, Kind.JOB, names[-1]).definition.payload == names


@pytest.mark.parametrize(
    ("setting", "value", "name"),
    [
        ("tx_isolation", "'REPEATABLE-READ'", "isolation"),
        ("time_zone", "'+01:00'", "time zone"),
        ("sql_mode", "''", "sql mode"),
        ("character_set_connection", "latin1", "character set"),
    ],
)
def test_a_proxy_that_loses_our_settings_is_noticed(url: str, setting: str, value: str, name: str) -> None:
    with opened_store(url) as store:
        with store.pool.link() as link:
            link.execute(f"SET SESSION {setting} = {value}")
        assert line(store, name).level == "FAIL"


def test_tables_with_a_collation_that_folds_names(url: str) -> None:
    with opened_store(url) as store:
        sql(url, "ALTER TABLE solocron_jobs CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        assert line(store, "collation").level == "FAIL"


def test_galera_is_named_for_what_it_is(start_server: StartServer) -> None:
    """A cluster of one without a provider: what the server says of itself is what we go by."""
    server = start_server(MariaDB, settings={"wsrep-on": "ON", "wsrep-provider": "none", "binlog-format": "ROW"})
    with opened_store(server.url) as store:
        assert store.capabilities.tier is Tier.C
        assert "Galera" in store.capabilities.why
        assert line(store, "Galera").level == "FAIL"


def test_a_mysql_that_only_its_owner_may_write_is_read_only() -> None:
    assert is_read_only({"super_read_only": "ON"})


@pytest.mark.parametrize(
    ("text", "flavour", "version", "level"),
    [
        ("5.5.5-10.11.6-MariaDB-0+deb12u1", "MariaDB", (10, 11, 6), "OK"),
        ("10.5.29-MariaDB", "MariaDB", (10, 5, 29), "FAIL"),
        ("8.0.36", "MySQL", (8, 0, 36), "OK"),
        ("5.7.44-log", "MySQL", (5, 7, 44), "FAIL"),
    ],
)
def test_an_old_server_is_named(text: str, flavour: str, version: tuple[int, ...], level: str) -> None:
    link = MySQLLink.__new__(MySQLLink)
    link.version, link.is_mariadb = text, flavour == "MariaDB"
    assert version_of(link) == (flavour, version)
    assert checks._version(link).level == level


def test_an_old_server_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solocron.stores.sql.mysql.store.OLDEST", {"MariaDB": (99, 0), "MySQL": (99, 0)})
    with pytest.raises(StoreRefused, match=r"at least 99\.0 is needed"), opened_store(url):
        pass


def test_a_wall_clock_that_is_wrong(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = checks.wall
    monkeypatch.setattr(checks, "wall", lambda: real() - 3600 * SECOND)
    with opened_store(url) as store:
        assert line(store, "clock").level == "WARN"


class TestRights:
    @pytest.fixture
    def nobody(self, url: str) -> Iterator[str]:
        """A user without any right to change tables."""
        name = f"nobody{next(numbers)}"
        sql(url, f"CREATE USER {name}@'127.0.0.1'", f"GRANT SELECT ON {urlsplit(url).path[1:]}.* TO {name}@'127.0.0.1'")
        yield name
        sql(url, f"DROP USER {name}@'127.0.0.1'")

    def test_without_the_right_to_create_tables_it_says_what_to_run(self, url: str, nobody: str) -> None:
        store = make_store(url.replace("solocron@", f"{nobody}@"))
        assert isinstance(store, MySQLStore)
        with pytest.raises(StoreRefused, match="Run `solocron migrate` as a user who may"):
            store.open()
        assert line(store, "rights").level == "WARN"
        assert line(store, "schema").level == "FAIL"
        store.close()
        assert sql(url, "SHOW TABLES") == []

    def test_the_grants_that_we_print_are_all_that_a_node_needs(self, url: str, nobody: str) -> None:
        text = migrations.sql("mariadb")
        body = "\n".join(each for each in text.splitlines() if not each.startswith("--"))
        sql(url, *(part for part in body.split(";\n") if part.strip()))
        for grant in (
            each[3:].rstrip(";") for each in text.splitlines() if each.startswith("-- GRANT") and "TO nodes" in each
        ):
            sql(url, grant.replace("TO nodes", f"TO {nobody}@'127.0.0.1'"))
        with opened_store(url.replace("solocron@", f"{nobody}@")) as store:
            put(store, session("s", expires_at=store.clock() + 60 * SECOND))
            put(store, job("j", due_at=store.clock() - SECOND), records=(record("j@0"),))
            assert take(store, "s", session="s") == ["j"]
            assert len(log(store)) == 1
            assert store.prune(before=store.clock(), limit=10) == 1
            store.signal()
            assert store.wait(0.0) is True
            assert log(store) == ()
            assert line(store, "schema").level == "OK"

    def test_a_right_that_is_missing_is_named(self, url: str, nobody: str) -> None:
        with opened_store(url):
            pass
        with opened_store(url.replace("solocron@", f"{nobody}@")) as store:
            assert store.read(All(Kind.JOB)) == ()
            with pytest.raises(StoreRefused, match=r"lacks a right.*nothing was written"):
                put(store, job("j"))


class TestSchema:
    def test_five_processes_may_open_an_empty_database_at_once(self, url: str) -> None:
        def start(name: str) -> int:
            with opened_store(url) as store:
                put(store, note(Kind.KEY, name))
            return 1

        assert processes([lambda name=name: start(name) for name in "abcde"]) == [1] * 5
        with opened_store(url) as store:
            assert [doc.name for doc in store.read(All(Kind.KEY))] == list("abcde")

    def test_old_code_works_on_a_newer_schema_unless_that_says_no(self, url: str) -> None:
        with opened_store(url):
            sql(url, "UPDATE solocron_meta SET value = '99' WHERE name = 'schema'")
        with opened_store(url) as store:
            put(store, job("j"))
            assert line(store, "schema").level == "WARN"
        sql(url, "UPDATE solocron_meta SET value = '99' WHERE name = 'compatible'")
        with pytest.raises(StoreRefused, match="pip install -U solocron"), opened_store(url):
            pass

    def test_two_prefixes_in_one_database_are_two_stores(self, url: str) -> None:
        with opened_store(f"{url}?prefix=one_") as one, opened_store(f"{url}?prefix=two_") as two:
            put(one, job("j"))
            assert two.read(All(Kind.JOB)) == ()

    def test_tables_that_vanish_under_a_running_node_are_named(self, url: str) -> None:
        with opened_store(url) as store:
            sql(url, "DROP TABLE solocron_jobs")
            with pytest.raises(StoreRefused, match="solocron migrate"):
                store.read(All(Kind.JOB))

    def test_due_jobs_are_found_by_their_index(self, url: str) -> None:
        with opened_store(url) as store:
            put(store, *(job(f"j{i:03}", due_at=store.clock() + SECOND * i) for i in range(300)))
            query = statements("solocron_", True)["due_jobs"].sql.replace("%%", "%")
            values = {"namespace": "default", "pool": "default", "shift": 0, "handlers": ("h",), "exclude": ("x",)}
            with store.pool.link() as link, link.db.cursor() as cursor:
                cursor.execute(f"EXPLAIN FORMAT=JSON {query}", values | {"limit": 10})
                plan = json.dumps(cursor.fetchall())
        assert "solocron_jobs_due" in plan
        assert "filesort" not in plan
