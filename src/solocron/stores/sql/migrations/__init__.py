"""Numbered migrations. Any number of processes may apply them at once: one does, under a lock, the others find it done.

Additive first, removing later, so that old and new code run together: `schema` in the meta table is the number of the
last migration, `compatible` the lowest number that code must know of to work with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from solocron.errors import InvalidError, StoreRefused
from solocron.packaged import packaged_text
from solocron.stores.sql.statements import TABLES
from solocron.stores.url import IDENTIFIER

if TYPE_CHECKING:
    from solocron.stores.sql.store import SqlStore

__all__ = [
    "DIALECTS",
    "LATEST",
    "Migration",
    "SchemaStatus",
    "check_compatible",
    "of",
    "sql",
    "status",
    "steps",
    "words",
]

FILES = ("0001_start",)
"""The migrations, the same for every dialect, in their order."""
LATEST = len(FILES)
"""The number of the newest migration that this code knows."""
COMPATIBLE = 1
"""The lowest number whose code can work with the newest schema."""

_INDEXES = (
    "jobs_due",
    "jobs_marks",
    "jobs_blocked",
    "documents_state",
    "documents_blocked",
    "runs_recorded",
    "runs_job",
    "runs_status",
)
DIALECTS: Mapping[str, str] = {
    "sqlite": "sqlite",
    "postgres": "postgres",
    "postgresql": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
}
_QUOTES = {"sqlite": '"', "postgres": '"', "mysql": "`"}


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: its number, what it is for, and its statements with table names still in braces."""

    number: int
    name: str
    about: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The migrations of a store: `applied` of `latest`; None: there is no schema yet."""

    applied: int | None
    latest: int = field(default_factory=lambda: LATEST)

    @property
    def current(self) -> bool:
        return self.applied is not None and self.applied >= self.latest


def status(store: SqlStore[Any]) -> SchemaStatus:
    """Return how many migrations a store has; change nothing."""
    return SchemaStatus(store.schema())


def sql(dialect: str, *, schema: str | None = None, prefix: str = "solocron_") -> str:
    """Return every migration as SQL for a database administrator to run, and the rights that nodes need."""
    if dialect not in DIALECTS:
        raise InvalidError(f"there are no migrations for {dialect!r}; choose {', '.join(sorted(DIALECTS))}.")
    for part in (schema, prefix):
        if part is not None and not IDENTIFIER.fullmatch(part):
            raise InvalidError(f"{part!r} cannot be part of a table's name: take a-z, 0-9 and _, at most 48 of them.")
    names = words(dialect, prefix, schema)
    about = "\n".join(f"-- {each.number:04} {each.name}: {each.about}" for each in of(DIALECTS[dialect]))
    made = [f'CREATE SCHEMA IF NOT EXISTS "{schema}"'] if schema and dialect.startswith("postgres") else []
    made += steps(dialect, names, None)
    return "\n\n".join([about, *(f"{statement};" for statement in made), *_grants(dialect, names, schema)]) + "\n"


@cache
def of(folder: str) -> tuple[Migration, ...]:
    """Return the migrations of a dialect in their order."""
    found = []
    for file in FILES:
        number, _, name = file.partition("_")
        text = packaged_text(__name__, folder, f"{file}.sql")
        about = text.partition("\n")[0].removeprefix("--").strip()
        body = re.sub(r"^--.*$", "", text, flags=re.MULTILINE)
        statements = tuple(part.strip() for part in body.split(";\n") if part.strip())
        found.append(Migration(int(number), name, about, statements))
    return tuple(found)


def words(dialect: str, prefix: str = "solocron_", schema: str | None = None) -> dict[str, str]:
    """Return the values of the words in braces: tables with their schema, indexes without, the collation of names."""
    quote = _QUOTES[DIALECTS[dialect]]
    before = f"{quote}{schema}{quote}." if schema else ""
    found = {name: f"{before}{quote}{prefix}{name}{quote}" for name in TABLES}
    found |= {name: f"{quote}{prefix}{name}{quote}" for name in _INDEXES}
    # Byte by byte, spaces at the end included; each of the two servers has a name of its own for that.
    return found | {"collation": "utf8mb4_0900_bin" if dialect == "mysql" else "utf8mb4_nopad_bin"}


def steps(dialect: str, names: Mapping[str, str], applied: int | None) -> tuple[str, ...]:
    """Return the statements that bring a schema from `applied` up to date; the caller holds the lock."""
    folder = DIALECTS[dialect]
    text = {"sqlite": "TEXT", "postgres": 'TEXT COLLATE "C"', "mysql": "VARCHAR(191)"}[folder]
    out = [f"CREATE TABLE IF NOT EXISTS {names['meta']} (name {text} PRIMARY KEY, value TEXT NOT NULL)"]
    for migration in of(folder):
        if migration.number > (applied or 0):
            out += [re.sub(r"\{([a-z_]+)\}", lambda m: names[m[1]], statement) for statement in migration.statements]
    again = "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    if folder == "mysql":
        again = "ON DUPLICATE KEY UPDATE value = VALUES(value)"
    for name, number in (("schema", LATEST), ("compatible", COMPATIBLE)):
        out.append(f"INSERT INTO {names['meta']} (name, value) VALUES ('{name}', '{number}') {again}")  # noqa: S608 - ours
    return tuple(out)


def check_compatible(found: Mapping[str, str], where: str) -> int | None:
    """Return the schema's number; refuse one that this code is too old for."""
    if "schema" not in found:
        return None
    if int(found.get("compatible", 0)) > LATEST:
        raise StoreRefused(
            f"the schema of {where} ({found['schema']}) is newer than this Solocron can work with ({LATEST}); "
            "nothing was written. Upgrade: pip install -U solocron."
        )
    return int(found["schema"])


def _grants(dialect: str, names: Mapping[str, str], schema: str | None) -> list[str]:
    """Return the rights that nodes need, as comments: the administrator knows their accounts."""
    if dialect == "sqlite":
        return []
    lines = ["-- Nodes need no right to change tables. Grant them this, and nothing else:"]
    if schema:
        lines.append(f'-- GRANT USAGE ON SCHEMA "{schema}" TO nodes;')
    lines.append(f"-- GRANT SELECT ON {names['meta']} TO nodes;")
    used = [name for name in TABLES if name != "meta" and (name != "signals" or DIALECTS[dialect] == "mysql")]
    lines += [f"-- GRANT SELECT, INSERT, UPDATE, DELETE ON {names[name]} TO nodes;" for name in used]
    lines.append("-- Programs that trigger in transactions of their own need this, and nothing else:")
    lines.append(f"-- GRANT INSERT ON {names['documents']} TO programs;")
    return ["\n".join(lines)]
