"""`solocron migrate` on each SQL store: empty, older and newer schemas, five at once, and roles that may not."""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from solocron import Run, Scheduler
from solocron.cli import main
from solocron.errors import StoreRefused
from solocron.stores.sql import migrations
from solocron.stores.sql.migrations import LATEST, Migration
from solocron.stores.sql.store import SqlStore
from solocron.stores.url import make_store
from solocron.testing.conformance.rivals import processes
from tests.servers import MariaDB, Postgres
from tests.unit.effects.libraries import mysql_options

numbers = itertools.count(1)


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database, or a file that does not exist."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return str(request.getfixturevalue(request.param).fresh_url())


@pytest.fixture
def migrate(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(url: str, *flags: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["migrate", "--store", url, *flags])
        return code, *capsys.readouterr()

    return call


def execute(url: str, *statements: str) -> None:
    """As the owner of the database."""
    connection: Any
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    elif url.startswith("postgres"):
        import psycopg

        connection = psycopg.connect(url)
    else:
        import pymysql

        connection = pymysql.connect(**mysql_options(url))
    cursor = connection.cursor()
    for statement in statements:
        cursor.execute(statement)
    connection.commit()
    connection.close()


def schema(url: str) -> int | None:
    store = make_store(url)
    assert isinstance(store, SqlStore)
    try:
        return store.schema()
    finally:
        store.close()


def work_done(url: str) -> str:
    """What becomes of a run on a node of this code."""
    scheduler = Scheduler(url, enabled=True)
    scheduler.every("1d", name="work")(_work)
    scheduler.tick()
    run = scheduler.trigger("work")
    scheduler.tick()
    try:
        return scheduler.get_run(run).status
    finally:
        scheduler.stop()


def _work(run: Run) -> None: ...


def test_an_empty_database_gets_its_tables_and_the_second_time_nothing(url: str, migrate: Any) -> None:
    missing = 3 if url.startswith("sqlite") else 1  # a file that is not there is not made by a question
    assert migrate(url, "--status")[0] == missing
    code, out, _ = migrate(url)
    assert (code, out) == (0, f"schema made, now {LATEST} of {LATEST}: up to date\n")
    assert migrate(url)[:2] == (0, f"schema {LATEST} of {LATEST}: up to date\n")
    assert migrate(url, "--status")[0] == 0
    assert work_done(url) == "succeeded"


def test_five_processes_migrate_at_once_and_all_succeed(url: str) -> None:
    def start() -> int:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            return main(["migrate", "--store", url])

    assert processes([start] * 5) == [0] * 5
    assert work_done(url) == "succeeded"


@contextmanager
def next_release() -> Iterator[None]:
    """A code that knows one migration more, additive as they all are."""
    old = migrations.of

    def of(folder: str) -> tuple[Migration, ...]:
        added = "ALTER TABLE {jobs} ADD COLUMN colour VARCHAR(16)"
        return (*old(folder), Migration(LATEST + 1, "colour", "Jobs have a colour.", (added,)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrations, "of", of)
        patch.setattr(migrations, "LATEST", LATEST + 1)
        yield


def test_an_older_schema_is_brought_up_to_date_while_nodes_of_both_releases_work(url: str, migrate: Any) -> None:
    assert work_done(url) == "succeeded"
    with Scheduler(url, enabled=True, node="old") as old:
        with next_release():
            code, out, _ = migrate(url, "--status")
            assert (code, out) == (1, f"schema {LATEST} of {LATEST + 1}: old; run `solocron migrate`\n")
            code, out, _ = migrate(url)
            assert (code, out) == (0, f"schema brought from {LATEST}, now {LATEST + 1} of {LATEST + 1}: up to date\n")
            assert work_done(url) == "succeeded", "a node of the new release"
        assert len(old.runs("work")) == 2, "what was there is still there"
        assert old.jobs()[0].name == "work"
        assert migrate(url, "--status")[0] == 0, "the old release can work with it"
        assert schema(url) == LATEST + 1
    assert work_done(url) == "succeeded", "a node of the old release on the new schema"


def test_a_newer_schema_is_left_alone_and_said_to_be_newer(url: str, migrate: Any) -> None:
    migrate(url)
    execute(url, f"UPDATE solocron_meta SET value = '{LATEST + 5}' WHERE name = 'schema'")
    code, out, _ = migrate(url)
    assert (code, out) == (0, f"schema {LATEST + 5}, newer than this Solocron's {LATEST}, which can work with it\n")
    execute(url, f"UPDATE solocron_meta SET value = '{LATEST + 1}' WHERE name = 'compatible'")
    code, _, err = migrate(url)
    assert code == 5
    assert "Upgrade: pip install -U solocron" in err


def test_a_node_that_is_too_old_is_refused_once_and_says_nothing_else(url: str, migrate: Any) -> None:
    """It used to report that the store did not answer, and a drain of a node that had never begun."""
    migrate(url)
    execute(url, f"UPDATE solocron_meta SET value = '{LATEST + 1}' WHERE name = 'compatible'")
    scheduler = Scheduler(url, enabled=True)
    scheduler.every("1d", name="work")(_work)
    said: list[str] = []
    scheduler.on("*", lambda event: said.append(event.name))
    with pytest.raises(StoreRefused, match="newer than this Solocron can work with"):
        scheduler.start()
    assert set(said) <= {"registered"}
    assert scheduler.stop(), "nothing is left of it"


def test_what_it_prints_makes_the_same_tables_and_connects_to_nobody(url: str, migrate: Any) -> None:
    code, out, _ = migrate(url, "--sql")
    assert code == 0
    body = "\n".join(line for line in out.splitlines() if not line.startswith("--"))
    execute(url, *(part for part in body.split(";\n") if part.strip()))
    assert migrate(url, "--status")[0] == 0
    assert migrate("postgresql://nobody@127.0.0.1:1/nowhere", "--sql")[0] == 0


def test_a_postgresql_role_that_may_not_is_told_who_may_and_nothing_changes(postgres: Postgres, migrate: Any) -> None:
    url, role = postgres.fresh_url(), f"low_{next(numbers)}"
    execute(url, f"CREATE ROLE {role} LOGIN", "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    code, _, err = migrate(url.replace("solocron@", f"{role}@"))
    assert code == 5
    assert "may not change it; nothing was written. Run `solocron migrate` as a user who may" in err
    assert schema(url) is None
    assert migrate(url)[0] == 0
    execute(url, f"DROP ROLE {role}")


def test_a_mariadb_user_who_may_not_is_told_who_may_and_nothing_changes(mariadb: MariaDB, migrate: Any) -> None:
    url, user = mariadb.fresh_url(), f"low_{next(numbers)}"
    database = mysql_options(url)["database"]
    execute(url, f"CREATE USER {user}@'%'", f"GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.* TO {user}@'%'")
    code, _, err = migrate(url.replace("solocron@", f"{user}@"))
    assert code == 5
    assert "may not change it; nothing was written. Run `solocron migrate` as a user who may" in err
    assert schema(url) is None
    assert migrate(url)[0] == 0
    execute(url, f"DROP USER {user}@'%'")


@pytest.mark.parametrize("scheme", ["postgresql", "mariadb", "redis"])
@pytest.mark.parametrize("flags", [[], ["--status"], ["--sql"], ["--json"]])
def test_no_answer_shows_the_password(scheme: str, flags: list[str], migrate: Any) -> None:
    code, out, err = migrate(f"{scheme}://canary:c4n4ry-p4ss@127.0.0.1:1/0", *flags)
    assert code in (0, 2, 5)
    assert "c4n4ry" not in out + err


@pytest.mark.parametrize("flags", [["--sql", "--status"], ["--sql", "--store", "redis://localhost"]])
def test_a_question_without_an_answer_is_refused(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", *flags]) == 2
    assert "next: solocron migrate --help" in capsys.readouterr().err


def test_a_store_without_a_schema_has_nothing_to_migrate(migrate: Any) -> None:
    code, out, _ = migrate("memory://migrating", "--json")
    assert (code, out) == (0, '{\n  "before": null,\n  "applied": null,\n  "latest": null,\n  "current": true\n}\n')
