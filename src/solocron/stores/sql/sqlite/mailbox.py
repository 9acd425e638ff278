"""Where a transaction of the user's own leaves a request in a SQLite file.

SQLite has one writer at a time: while that transaction is open, no other client can write, and nodes cannot renew.
It has to be short whatever it does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from solocron.stores.mailbox import Mailbox
from solocron.stores.sql import migrations
from solocron.stores.sql.mailing import elsewhere, insertion

if TYPE_CHECKING:
    from solocron.stores.sql.sqlite.store import SQLiteStore

__all__ = ["open_mailbox"]

_RING = "INSERT INTO {signals} (namespace, count) VALUES (?, 1) ON CONFLICT (namespace) DO UPDATE SET count = count + 1"


@contextmanager
def open_mailbox(store: SQLiteStore) -> Iterator[Mailbox]:
    """In the file that the connection has opened as its main one."""
    words = migrations.words("sqlite")

    def mistake(rows: Sequence[Sequence[Any]]) -> str | None:
        file = next((str(row[2] or "") for row in rows if row[1] == "main"), "")
        here = file != "" and os.path.exists(file) and os.path.samefile(file, store.place.path)
        return None if here else elsewhere(store.url)

    yield Mailbox(
        dialect="sqlite",
        question=("PRAGMA database_list", ()),
        mistake=mistake,
        put=lambda note: (
            insertion(words["documents"], store.namespace, note),
            (_RING.format(**words), (store.namespace,)),
        ),
    )
