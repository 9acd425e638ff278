"""Numbered migrations. Any number of processes may apply them at once: one does, under a lock, the others find it done.

Additive first, removing later, so that old and new code run together: `schema` in the meta table is the number of the
last migration, `compatible` the lowest number that code must know of to work with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from solocron.errors import Invalid, StoreRefused
from solocron.stores.sql.statements import TABLES

if TYPE_CHECKING:
    from solocron.stores.sql.store import SqlStore

__all__ = ["LATEST", "Migration", "Status", "check_compatible", "names", "of", "sql", "statements_of", "status"]

LATEST = 1
"""The number of the newest migration that this code knows."""
COMPATIBLE = 1
"""The lowest number whose code can work with the newest schema."""

_INDEXES = ("jobs_due", "jobs_blocked", "documents_state", "documents_blocked", "runs_recorded", "runs_job")
DIALECTS = ("sqlite", "postgres", "mysql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: its number, what it is for, and its statements with table names still in braces."""

    number: int
    name: str
    about: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """How far a store's schema has come: `applied` of `latest`; None: there is no schema yet."""

    applied: int | None
    latest: int = LATEST

    @property
    def current(self) -> bool:
        return self.applied is not None and self.applied >= self.latest


def status(store: SqlStore[Any]) -> Status:
    """How far the schema of a store has come; opens a connection and changes nothing."""
    return Status(store.schema())


def sql(dialect: str, *, schema: str | None = None, prefix: str = "solocron_") -> str:
    """Every migration as text, for a database administrator to read and run."""
    if dialect not in DIALECTS:
        raise Invalid(f"there are no migrations for {dialect!r}; choose {', '.join(DIALECTS)}.")
    parts = []
    words = names(prefix, schema)
    for migration in of(dialect):
        parts.append(f"-- {migration.number:04} {migration.name}: {migration.about}")
        parts += [f"{statement};" for statement in statements_of(migration, words)]
    parts += [f"{statement};" for statement in (_meta(dialect, words), *_record(dialect, words))]
    return "\n\n".join(parts) + "\n"


@cache
def of(dialect: str) -> tuple[Migration, ...]:
    """The migrations of a dialect in their order."""
    found = []
    folder = resources.files(__package__) / dialect
    for file in sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda e: e.name):
        number, _, name = file.name.removesuffix(".sql").partition("_")
        text = file.read_text(encoding="utf-8")
        about = text.partition("\n")[0].removeprefix("--").strip()
        body = re.sub(r"^--.*$", "", text, flags=re.MULTILINE)
        statements = tuple(part.strip() for part in body.split(";\n") if part.strip())
        found.append(Migration(int(number), name, about, statements))
    return tuple(found)


def names(prefix: str = "solocron_", schema: str | None = None, quote: str = "") -> dict[str, str]:
    """What the words in braces stand for: tables with their schema, indexes without."""
    before = f"{quote}{schema}{quote}." if schema else ""
    words = {name: f"{before}{quote}{prefix}{name}{quote}" for name in TABLES}
    return words | {name: f"{quote}{prefix}{name}{quote}" for name in _INDEXES}


def statements_of(migration: Migration, words: Mapping[str, str]) -> tuple[str, ...]:
    """The statements with the names filled in."""
    return tuple(
        re.sub(r"\{([a-z_]+)\}", lambda match: words[match[1]], statement) for statement in migration.statements
    )


def _meta(dialect: str, words: Mapping[str, str]) -> str:
    text = {"sqlite": "TEXT", "postgres": 'TEXT COLLATE "C"', "mysql": "VARCHAR(191)"}[dialect]
    return f"CREATE TABLE IF NOT EXISTS {words['meta']} (name {text} PRIMARY KEY, value TEXT NOT NULL)"


def _record(dialect: str, words: Mapping[str, str], number: int = LATEST) -> tuple[str, ...]:
    """Write down how far the schema has come; the numbers are ours, so nothing needs to be bound."""
    if dialect == "mysql":
        insert = f"REPLACE INTO {words['meta']} (name, value) VALUES ('{{}}', '{{}}')"  # noqa: S608 - our own names
    else:
        insert = (
            f"INSERT INTO {words['meta']} (name, value) VALUES ('{{}}', '{{}}') "  # noqa: S608 - our own names
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        )
    return insert.format("schema", number), insert.format("compatible", COMPATIBLE)


def steps(dialect: str, words: Mapping[str, str], applied: int | None) -> tuple[str, ...]:
    """The statements that bring a schema from `applied` up to date; the caller holds the lock."""
    out = [_meta(dialect, words)]
    for migration in of(dialect):
        if migration.number > (applied or 0):
            out += statements_of(migration, words)
    return (*out, *_record(dialect, words))


def check_compatible(found: Mapping[str, str], where: str) -> int | None:
    """The schema's number; refuses one that this code is too old for."""
    if "schema" not in found:
        return None
    if int(found.get("compatible", 0)) > LATEST:
        raise StoreRefused(
            f"the schema of {where} ({found['schema']}) is newer than this Solocron can work with ({LATEST}); "
            "nothing was written. Upgrade: pip install -U solocron."
        )
    return int(found["schema"])
