"""The schema: made once however many start at once, never half, and not by those who may not."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from solocron.errors import InvalidError, StoreRefused
from solocron.model.change import Kind
from solocron.stores.contract import All
from solocron.stores.sql import migrations
from solocron.stores.sql.migrations import LATEST, SchemaStatus
from solocron.stores.sql.sqlite import SQLiteStore
from solocron.stores.url import make_store
from solocron.testing.conformance.kit import note, put
from solocron.testing.conformance.rivals import processes


def made(path: Path) -> SQLiteStore:
    store = make_store(f"sqlite:///{path}")
    assert isinstance(store, SQLiteStore)
    return store


def test_five_processes_may_open_an_empty_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    def start(name: str) -> int:
        store = made(path)
        store.open()
        put(store, note(Kind.KEY, name))
        store.close()
        return 1

    for attempt in range(3):
        path = tmp_path / f"{attempt}.db"
        assert processes([lambda name=name: start(name) for name in "abcde"]) == [1] * 5
        store = made(path)
        assert [doc.name for doc in store.read(All(Kind.KEY))] == list("abcde")
        store.close()


def test_an_open_store_says_how_far_its_schema_has_come(tmp_path: Path) -> None:
    store = made(tmp_path / "a.db")
    (tmp_path / "a.db").touch()
    assert migrations.status(store) == SchemaStatus(None)
    assert not migrations.status(store).current
    store.migrate()
    assert migrations.status(store) == SchemaStatus(LATEST)
    assert migrations.status(store).current
    store.close()


def test_a_store_that_is_up_to_date_is_not_written_to_when_it_is_opened(tmp_path: Path) -> None:
    first, again = made(tmp_path / "a.db"), made(tmp_path / "a.db")
    first.open()
    again.open()
    assert again.statements["commit"] == 0
    first.close()
    again.close()


def _made_with(path: Path, **values: int) -> None:
    """A store whose meta table says something else."""
    store = made(path)
    store.open()
    store.close()
    with sqlite3.connect(path) as other:
        other.executemany("UPDATE solocron_meta SET value = ? WHERE name = ?", [(v, k) for k, v in values.items()])
    other.close()


def test_old_code_works_on_a_newer_schema_that_says_so(tmp_path: Path) -> None:
    _made_with(tmp_path / "a.db", schema=LATEST + 5)
    store = made(tmp_path / "a.db")
    put(store, note(Kind.KEY, "n"))
    assert migrations.status(store) == SchemaStatus(LATEST + 5)
    (line,) = [check for check in store.checks() if check.name == "schema"]
    assert (line.level, line.remedy) == ("WARN", "pip install -U solocron")
    store.close()


def test_old_code_refuses_a_schema_that_is_too_new_for_it(tmp_path: Path) -> None:
    _made_with(tmp_path / "a.db", schema=LATEST + 5, compatible=LATEST + 1)
    store = made(tmp_path / "a.db")
    with pytest.raises(StoreRefused, match="pip install -U solocron"):
        store.open()
    assert [check.level for check in store.checks() if check.name == "store"] == ["FAIL"]
    store.close()


def test_the_applications_own_tables_in_the_same_file_are_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as theirs:
        theirs.execute("CREATE TABLE orders (id INTEGER)")
        theirs.execute("INSERT INTO orders VALUES (7)")
    store = made(tmp_path / "a.db")
    put(store, note(Kind.KEY, "n"))
    store.close()
    assert theirs.execute("SELECT id FROM orders").fetchall() == [(7,)]
    theirs.close()


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql", "mariadb"])
def test_an_administrator_can_read_every_statement(dialect: str) -> None:
    text = migrations.sql(dialect, prefix="mine_")
    assert "{" not in text
    for table in ("meta", "jobs", "documents", "holds", "runs"):
        assert f"mine_{table}" in text
    assert ("GRANT SELECT, INSERT, UPDATE, DELETE ON" in text) is (dialect != "sqlite")


def test_what_an_administrator_runs_is_what_a_node_expects(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as other:
        other.executescript(migrations.sql("sqlite"))
    other.close()
    store = made(tmp_path / "a.db")
    store.open()
    assert migrations.status(store).current
    store.close()


def test_a_schema_of_its_own_is_created_and_granted() -> None:
    text = migrations.sql("postgresql", schema="jobs")
    assert 'CREATE SCHEMA IF NOT EXISTS "jobs"' in text
    assert '"jobs"."solocron_runs"' in text
    assert "GRANT USAGE ON SCHEMA" in text


@pytest.mark.parametrize("bad", [{"prefix": "a;b"}, {"schema": 'x"y'}, {"prefix": ""}])
def test_names_that_are_no_names_are_refused(bad: dict[str, str]) -> None:
    with pytest.raises(InvalidError, match="table's name"):
        migrations.sql("postgres", **bad)


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(InvalidError, match="oracle"):
        migrations.sql("oracle")


@pytest.mark.parametrize("folder", ["sqlite", "postgres", "mysql"])
def test_migrations_are_numbered_without_a_gap_and_say_what_they_are_for(folder: str) -> None:
    found = migrations.of(folder)
    assert [each.number for each in found] == list(range(1, LATEST + 1))
    assert migrations.__file__ is not None
    files = Path(migrations.__file__).parent.joinpath(folder).iterdir()
    assert sorted(file.name for file in files) == [f"{each.number:04}_{each.name}.sql" for each in found]
    assert all(each.about.endswith(".") and each.statements for each in found)
