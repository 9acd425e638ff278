"""SQL lives in files, each statement with a name and a sentence; every dialect has all that the code refers to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import solocron.stores.sql as package
from solocron.stores.sql import statements
from solocron.stores.sql.mysql.store import statements as mysql
from solocron.stores.sql.postgres.sql import statements as postgres
from solocron.stores.sql.postgres.sql import writing
from solocron.stores.sql.rows import COLUMNS
from solocron.stores.sql.sqlite.store import statements as sqlite
from solocron.stores.sql.statements import Statement

FOLDER = Path(package.__file__).parent
DIALECTS = {
    "sqlite": sqlite(),
    "postgres": postgres("solocron_", "jobs"),
    "mysql": mysql("solocron_", False),
    "mariadb": mysql("solocron_", True),
}
each_dialect = pytest.mark.parametrize("found", DIALECTS.values(), ids=DIALECTS.keys())


@each_dialect
def test_every_statement_has_a_sentence(found: dict[str, Statement]) -> None:
    for name, statement in found.items():
        assert statement.name == name
        assert re.fullmatch(r"[A-Z].{9,}\.", statement.about), name


@each_dialect
def test_every_bulk_statement_is_there(found: dict[str, Statement]) -> None:
    assert COLUMNS.keys() <= found.keys()


def test_a_sqlite_statement_binds_one_value_for_each_column() -> None:
    for name, columns in COLUMNS.items():
        assert sqlite()[name].sql.count("?") == len(columns), name


@each_dialect
def test_every_word_in_braces_is_filled_in(found: dict[str, Statement]) -> None:
    late = {"{selection}", "{counts}", "{rows}", "{values}"}  # put together when the batch is known
    for statement in found.values():
        assert set(re.findall(r"\{[^}]*\}", statement.sql)) <= late, statement.name


@each_dialect
def test_names_that_the_code_asks_for_exist(found: dict[str, Statement]) -> None:
    folder = next(name for name, these in DIALECTS.items() if these is found).replace("mariadb", "mysql")
    files = [*(FOLDER / folder).glob("*.py"), FOLDER / "store.py"]
    code = "\n".join(file.read_text() for file in files)
    asked = set(re.findall(r'\.(?:all|run|one|many|inside|locked|returning|begin_with)\(\s*"(\w+)"', code))
    assert len(asked) > 5
    assert asked <= found.keys()


def test_no_statement_waits_that_nobody_asks_for() -> None:
    code = "\n".join(file.read_text() for file in FOLDER.rglob("*.py"))
    known = {name for found in DIALECTS.values() for name in found} - COLUMNS.keys()
    words = set(re.findall(r"\w+", code))
    built = {f"{verb}_{table}" for verb in ("named", "held", "held_by_any", "all") for table in ("jobs", "documents")}
    built |= {f"{table}_aside_before" for table in ("job", "document")}
    built |= {f"set_{table}_aside" for table in ("job", "document")}
    built |= {f"end_of_history{suffix}" for suffix in ("", "_of_job", "_of_status")}
    unused = {name for name in known if name.removesuffix("_locked") not in words | built}
    assert unused == set()


def test_a_selection_that_locks_differs_from_the_one_that_reads_by_a_word() -> None:
    """A copy of it would go its own way one day."""
    for found in (mysql("p_", True), mysql("p_", False)):
        for name in ("named_jobs", "held_documents", "all_jobs"):
            assert found[f"{name}_locked"].sql == f"{found[name].sql} FOR UPDATE"
        assert found["due_jobs_locked"].sql == f"{found['due_jobs'].sql} FOR UPDATE SKIP LOCKED"
    for name in ("named_jobs", "held_documents", "all_jobs"):
        found = postgres("p_", None)
        assert f"({found[name].sql} FOR UPDATE)" in found[f"{name}_locked"].sql
    assert not any(name.endswith("_locked") for name in sqlite())


def test_a_later_file_replaces_what_an_earlier_one_says() -> None:
    words = dict.fromkeys((*statements.TABLES, "share", "text", "identity"), "x")
    found = statements.load(("common", "common"), words, {"in": lambda name: f"IN :{name}", "by": str})
    assert "x" in found["holders"].sql


def test_table_names_carry_schema_and_prefix() -> None:
    assert '"jobs"."solocron_holds"' in postgres("solocron_", "jobs")["holders"].sql
    assert '"mine_holds"' in postgres("mine_", None)["holders"].sql
    assert "`mine_holds`" in mysql("mine_", True)["holders"].sql


def test_a_batch_is_one_statement_of_the_parts_that_it_needs() -> None:
    claim = writing(
        "p_", None, ("job_moved",), ("record_appended", "hold_added"), session=True, gate=True, notify=False
    )
    assert claim.count("WITH") == 1
    assert "pg_control_system" in claim
    assert "FOR SHARE" in claim
    assert "pg_notify" not in claim
    assert "DELETE" not in claim
    plain = writing("p_", None, ("job_added",), (), session=False, gate=False, notify=True)
    assert "FOR SHARE" not in plain
    assert "pg_control_system" not in plain
    assert "pg_notify" in plain


def test_every_sql_file_lies_beside_the_code_that_is_packaged() -> None:
    files = {str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.sql")}
    assert {f"statements/{name}.sql" for name in ("common", "sqlite", "postgres", "mysql")} <= files
    assert {f"migrations/{name}/0001_start.sql" for name in ("sqlite", "postgres", "mysql")} <= files
