"""One file on one machine: WAL, synchronous, short transactions behind a fair queue, a clock that no step can move."""

from solocron.stores.sql.sqlite.store import SQLiteStore

__all__ = ["SQLiteStore"]
