"""Autogenerate of the real Alembic leaves Solocron's tables alone: a dropped key is an effect repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from solocron import Scheduler
from solocron.alembic import include_name, include_object
from solocron.effects.guard import guard
from solocron.effects.tables import DDL
from solocron.effects.transaction import claim_items
from solocron.stores.sql.statements import TABLES
from tests.unit.effects.libraries import sqlalchemy_url

Look = Callable[..., set[tuple[str, str]]]


def own() -> sa.MetaData:
    """The user's models: one table that is there, one that is still to be made."""
    metadata = sa.MetaData()
    sa.Table("invoices", metadata, sa.Column("id", sa.Integer, primary_key=True))
    sa.Table("receipts", metadata, sa.Column("id", sa.Integer, primary_key=True))
    return metadata


@pytest.fixture(params=["sqlite", "postgres", "postgres?schema=cron", "sqlite?prefix=my_"])
def look(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Look, str]]:
    """A database with a store, keys and guards in it; returns what autogenerate would do, and the store's prefix."""
    kind, _, options = request.param.partition("?")
    url = request.getfixturevalue("postgres").fresh_url() if kind == "postgres" else f"sqlite:///{tmp_path}/books.db"
    store = f"{url}?{options}" if kind == "postgres" and options else url
    prefix = options.removeprefix("prefix=") if "prefix" in options else "solocron_"
    Scheduler(store, enabled=True).open().store.close()
    engine = sa.create_engine(sqlalchemy_url(url))
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE invoices (id INTEGER PRIMARY KEY)"))
        connection.execute(sa.text("CREATE TABLE old (id INTEGER PRIMARY KEY)"))
        if prefix != "solocron_":
            for table in TABLES:
                connection.execute(sa.text(f"ALTER TABLE solocron_{table} RENAME TO {prefix}{table}"))
        schema = "cron" if "schema" in options else None
        guard(connection, scope="default/job", fence=1, schema=schema)
        claim_items(connection, "items", [1], namespace="default", run=None, fence=1, schema=schema)

    def differences(metadata: sa.MetaData | None = None, **filters: Any) -> set[tuple[str, str]]:
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"include_schemas": kind == "postgres", **filters})
            found = compare_metadata(context, metadata or own())
        return {(change[0], change[1].name) for change in found if isinstance(change, tuple)}

    yield differences, prefix
    engine.dispose()


WANTED = {("add_table", "receipts"), ("remove_table", "old")}


def test_autogenerate_would_drop_our_tables_and_with_the_filter_it_leaves_them_alone(look: tuple[Look, str]) -> None:
    differences, prefix = look
    dropped = {name for what, name in differences() if what == "remove_table"}
    assert dropped >= {"solocron_keys", "solocron_guards", f"{prefix}jobs", f"{prefix}runs", f"{prefix}documents"}
    filters = {"include_object": include_object, "include_name": include_name}
    for option, plain in filters.items():
        chosen = plain if prefix == "solocron_" else partial(plain, prefix=prefix)
        assert differences(**{option: chosen}) == WANTED, option


def test_a_table_of_ours_that_the_users_own_models_declare_is_compared_like_any_other(tmp_path: Path) -> None:
    """Who makes `solocron_keys` by migrations of their own may keep it in their models."""
    engine, metadata = sa.create_engine(f"sqlite:///{tmp_path}/books.db"), sa.MetaData()
    sa.Table("solocron_guards", metadata, sa.Column("scope", sa.String(400), primary_key=True))
    with engine.begin() as connection:
        connection.execute(sa.text(DDL["sqlite"]["solocron_guards"]))
        context = MigrationContext.configure(connection, opts={"include_object": include_object})
        changes = compare_metadata(context, metadata)
    engine.dispose()
    assert changes[-1][0] == "remove_column"
    assert changes[-1][3].name == "fence", "the model leaves it out"


@pytest.mark.parametrize("name", ["solocron_keys", "solocron_a_later_release"])
def test_names_that_begin_like_ours_are_ours_and_no_others(name: str) -> None:
    assert not include_name(name, "table", {"schema_name": None})
    assert not include_object(object(), name, "table", True, None)
    assert include_name(f"my_{name}", "table", {"schema_name": None})
    assert include_name(name, "column", {"schema_name": None, "table_name": "invoices"})
    assert include_name(None, "schema", {})


def test_under_a_prefix_of_ones_own_only_the_tables_that_we_make_are_ours() -> None:
    assert not include_name("my_jobs", "table", {}, prefix="my_")
    assert not include_name("solocron_keys", "table", {}, prefix="my_")
    assert include_name("my_invoices", "table", {}, prefix="my_"), "the prefix may be one that the application uses too"
