"""A MySQL or MariaDB server: row locks, READ COMMITTED, the server's clock; it cannot notify, so it is polled."""

from solocron.stores.sql.mysql.store import MySQLStore

__all__ = ["MySQLStore"]
