"""The statements with which a transaction of the user's own leaves a request, alike in every dialect."""

from __future__ import annotations

from solocron.model._fast.json_text import read, write_ascii
from solocron.model.change import SmallDocument
from solocron.model.codec import encode_state
from solocron.stores.mailbox import Written
from solocron.stores.sql.rows import birth

__all__ = ["elsewhere", "insertion"]


def insertion(table: str, namespace: str, note: SmallDocument) -> Written:
    """Return the insert of one new row, and nothing else: it locks no row that another client uses."""
    # In ASCII, because the user's connection may speak any character set.
    body = write_ascii(read(encode_state(note)))
    sql = f"INSERT INTO {table} (namespace, kind, name, version, fixed, body) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608 - ours
    return sql, (namespace, str(note.kind), note.name, birth(), "{}", body)


def elsewhere(where: str) -> str:
    """Return the message about a connection that leads to another database."""
    return f"This connection does not lead to the database of {where}: only a transaction in there can trigger."
