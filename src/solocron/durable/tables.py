"""Two small tables of ours in the user's own database: the fences that were seen there, the keys that were used.

They are made when they are first needed, or beforehand by the user's own migrations, with the statements of `DDL`.
"""

from __future__ import annotations

from solocron.durable.connections import Link, Reply, Script
from solocron.errors import Invalid

__all__ = ["DDL", "GUARDS", "KEYS", "ensure"]

GUARDS = "solocron_guards"
KEYS = "solocron_keys"

_COLUMNS = {
    GUARDS: "scope {text} PRIMARY KEY, fence BIGINT NOT NULL",
    KEYS: "name {text} PRIMARY KEY, run {text}, fence BIGINT NOT NULL, value {long}, "
    "made_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
}
_TYPES = {
    "postgresql": {"text": "VARCHAR(400)", "long": "TEXT"},
    "sqlite": {"text": "VARCHAR(400)", "long": "TEXT"},
    "mysql": {"text": "VARCHAR(400) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "long": "MEDIUMTEXT"},
}
DDL = {
    dialect: {
        table: f"CREATE TABLE IF NOT EXISTS {table} ({columns.format(**types)})" for table, columns in _COLUMNS.items()
    }
    for dialect, types in _TYPES.items()
}
"""The statements that make the tables, by dialect and table."""

_EXISTS = {
    "postgresql": "SELECT 1 WHERE to_regclass(?) IS NOT NULL",
    "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?",
    "mysql": "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?",
}


def ensure(link: Link, table: str) -> Script[None]:
    """Make the table if it is not there, without ending the caller's transaction."""
    reply: Reply = yield _EXISTS[link.dialect], (table,)
    if reply.rows:
        return
    if link.dialect == "mysql":
        _create_beside(link, table)
        return
    if link.dialect == "postgresql":
        # Two transactions that create at once would fail on the catalogue's own keys; this one waits for the other.
        yield "SELECT pg_advisory_xact_lock(?)", (7_341_506_228,)
    yield DDL[link.dialect][table], ()


def _create_beside(link: Link, table: str) -> None:
    """MySQL commits the caller's transaction at any CREATE TABLE: another connection has to do it."""
    try:
        assert link.sibling is not None
        execute, close = link.sibling()
        try:
            execute(DDL["mysql"][table], ())
        finally:
            close()
    except Exception as error:
        raise Invalid(
            f"the table {table} is missing and could not be made ({error}); nothing was written. "
            f"Make it once: {DDL['mysql'][table]}"
        ) from error
