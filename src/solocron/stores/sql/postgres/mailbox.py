"""Where a transaction of the user's own leaves a request in PostgreSQL; the server tells the nodes at its commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from solocron.stores.mailbox import Mailbox
from solocron.stores.sql.mailing import elsewhere, insertion

if TYPE_CHECKING:
    from solocron.stores.sql.postgres.store import PostgresStore

__all__ = ["open_mailbox"]

_HERE = """
SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint, current_database()::text,
    (SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'INSERT')
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND c.relname = ?)
"""
"""Which server (no two started in the same microsecond), which database, whether this role may write there.

Asked before, because an error would cost the user the whole transaction.
"""


@contextmanager
def open_mailbox(store: PostgresStore) -> Iterator[Mailbox]:
    """In the schema that the store's own connections find, whatever the user's search path is."""
    table = f"{store.prefix}documents"
    start, database, schema = store.call(lambda link: link.all("here", {"documents": store.words["documents"]}))[0]
    full_name = f'"{schema}"."{table}"'

    def mistake(rows: Sequence[Sequence[Any]]) -> str | None:
        if tuple(rows[0][:2]) != (start, database):
            return elsewhere(store.url)
        if rows[0][2] is not True:
            return f"The role of this connection may not write there: GRANT INSERT ON {full_name} TO it."
        return None

    yield Mailbox(
        dialect="postgresql",
        question=(_HERE, (schema, table)),
        mistake=mistake,
        # Not in our own name: the nodes of this very process shall hear it too.
        put=lambda note: (
            insertion(full_name, store.namespace, note),
            ("SELECT pg_notify(?, ?)", (store.channel, "")),
        ),
    )
