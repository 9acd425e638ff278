"""Two small tables in the user's own database: the fences that were seen there, and the keys that were used.

They are made when first needed, or beforehand by the user's own migrations, with the statements of `DDL`. In PostgreSQL
they are in the schema that the store's URL names, whatever the connection's search path is: a key that one search path
finds and another does not would let its effect happen twice. Without `?schema=` the search path decides.
"""

from __future__ import annotations

from solocron.effects.connections import ConnectionAdapter, Reply, Script
from solocron.errors import InvalidError
from solocron.stores.contract import Store

__all__ = ["DDL", "GUARDS", "KEYS", "ensure", "schema_of"]

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

_IN_SCHEMA = """
SELECT current_user::text, n.oid IS NOT NULL, c.oid IS NOT NULL,
    CASE WHEN n.oid IS NULL THEN has_database_privilege(current_database(), 'CREATE')
         ELSE has_schema_privilege(n.oid, 'USAGE') AND has_schema_privilege(n.oid, 'CREATE') END,
    has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
        AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE')
FROM (SELECT 1) AS one LEFT JOIN pg_namespace n ON n.nspname = ?
    LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = ?
"""
"""Role, existence of schema and table, and the role's rights to make what is missing and to use what exists.

Checked beforehand, because an error would cost the user the whole transaction.
"""
# Two transactions that create at once would fail on the catalogue's own keys; with this, one waits for the other.
_ONE_AT_A_TIME = ("SELECT pg_advisory_xact_lock(?)", (7_341_506_228,))


def schema_of(store: Store) -> str | None:
    """Return the schema that the store's URL names; only PostgreSQL has them."""
    schema: str | None = getattr(store, "schema_name", None)
    return schema


def ensure(link: ConnectionAdapter, table: str, schema: str | None = None) -> Script[str]:
    """Make the table if it is missing, without ending the caller's transaction; return its name for statements."""
    if link.dialect == "postgresql" and schema is not None:
        yield from _ensure_in_schema(table, schema)
        return f'"{schema}".{table}'
    reply: Reply = yield _EXISTS[link.dialect], (table,)
    if reply.rows:
        return table
    if link.dialect == "mysql":
        _create_beside(link, table)
        return table
    if link.dialect == "postgresql":
        yield _ONE_AT_A_TIME
    yield DDL[link.dialect][table], ()
    return table


def _ensure_in_schema(table: str, schema: str) -> Script[None]:
    reply: Reply = yield _IN_SCHEMA, (schema, table)
    role, schema_there, table_there, may_make, may_use = reply.rows[0]
    name, make_schema = f'"{schema}".{table}', f'CREATE SCHEMA IF NOT EXISTS "{schema}"'
    make = DDL["postgresql"][table].replace(table, name, 1)
    if table_there:
        if not may_use:
            raise InvalidError(
                f"the role of this connection may not use the table {name}; nothing was written. Grant it once: GRANT "
                f'USAGE ON SCHEMA "{schema}" TO {role}; GRANT SELECT, INSERT, UPDATE, DELETE ON {name} TO {role}'
            )
        return
    statements = [make] if schema_there else [make_schema, make]
    if not may_make:
        raise InvalidError(
            f"the table {name} is missing in this database, and the role of this connection ({role}) may not make it; "
            f"nothing was written. Make it once: {'; '.join(statements)}"
        )
    yield _ONE_AT_A_TIME
    for statement in statements:
        yield statement, ()


def _create_beside(link: ConnectionAdapter, table: str) -> None:
    """Make the table over another connection: MySQL commits the caller's transaction at any CREATE TABLE."""
    try:
        assert link.sibling is not None
        execute, close = link.sibling()
        try:
            execute(DDL["mysql"][table], ())
        finally:
            close()
    except Exception as error:
        raise InvalidError(
            f"the table {table} is missing and could not be made ({error}); nothing was written. "
            f"Make it once: {DDL['mysql'][table]}"
        ) from error
