"""The mailbox of MySQL and MariaDB: requests that are left by a transaction of the user's own.

A request notifies no node: the counter of notifications is one row, which would stay locked until the user's commit,
and every node would wait. Nodes look for requests whenever they read that counter.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from solocron.errors import InvalidError
from solocron.stores.mailbox import Mailbox
from solocron.stores.sql.mailing import elsewhere, insertion

if TYPE_CHECKING:
    from solocron.stores.sql.mysql.store import MySQLStore

__all__ = ["open_mailbox"]


@contextmanager
def open_mailbox(store: MySQLStore) -> Iterator[Mailbox]:
    """Hold open a named lock that no other client can know: a connection that sees it held is on the same server."""
    store.open()
    if any(sign in store.database for sign in "%?"):
        raise InvalidError(f"{store.url}: a database of such a name cannot take part; nothing was triggered.")
    table = "`{}`.`{}documents`".format(store.database.replace("`", "``"), store.prefix)
    name = f"solocron {secrets.token_hex(16)}"
    link = store._connect()  # not of the pool, which wants its connections back on the thread that took them
    try:
        _, me = link.all("here", {"lock": name})[0]
        yield Mailbox(
            dialect="mysql",
            question=("SELECT is_used_lock(?)", (name,)),
            mistake=lambda rows: None if rows[0][0] == me else elsewhere(store.url),
            put=lambda note: (insertion(table, store.namespace, note),),
        )
    finally:
        link.close()
