"""A PostgreSQL server: row locks, the server's clock, one statement per batch, LISTEN and NOTIFY to wake up."""

from solocron.stores.sql.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
