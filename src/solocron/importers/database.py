"""Read whole tables of another program's database, for reading only."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from solocron.errors import InvalidError, MissingExtra
from solocron.stores.url import Secret

__all__ = ["Row", "Table", "rows_of", "table_reader"]

Row = dict[str, Any]
Table = Callable[[str], list[Row]]
"""Returns the rows of a table; raises InvalidError if it cannot be read."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")
_PATIENCE = 10


def table_reader(url: str) -> Table:
    """Return a reader of the tables at a URL such as SQLAlchemy and Django's tools use."""
    masked = Secret(url).masked
    scheme = url.partition("://")[0].partition("+")[0]
    connect = {"sqlite": _sqlite, "postgresql": _postgres, "postgres": _postgres, "mysql": _mysql, "mariadb": _mysql}
    if "://" not in url:  # not shown: it may be a password
        raise InvalidError(
            "SOURCE has no scheme; write the URL of the database, such as sqlite:///jobs.sqlite. Nothing was imported."
        )
    if scheme not in connect:
        raise InvalidError(
            f"{masked} is not the URL of a database that can be read: sqlite, postgresql or mysql. Nothing was "
            "imported."
        )

    def read(table: str) -> list[Row]:
        if not _NAME.fullmatch(table):
            raise InvalidError(f"{table!r:.60} is not the name of a table. Nothing was imported.")
        try:
            with closing(connect[scheme](url)) as connection:
                return rows_of(connection.cursor(), table)
        except (InvalidError, MissingExtra):
            raise
        except Exception as error:  # noqa: BLE001 - each driver has errors of its own, and the user needs the sentence
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise InvalidError(f"{table} of {masked} cannot be read: {reason}. Nothing was imported.") from None

    return read


def rows_of(cursor: Any, table: str) -> list[Row]:
    """Return every row of a table as a mapping; the columns differ between releases of its owner."""
    cursor.execute(f"SELECT * FROM {table}")  # noqa: S608 - a checked name, or one of ours
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _sqlite(url: str) -> Any:
    path = Path(unquote(url.partition("://")[2].removeprefix("/").partition("?")[0]))
    if not path.is_file():
        raise InvalidError(f"there is no file {path}. Nothing was imported.")
    return sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True, timeout=_PATIENCE)


def _postgres(url: str) -> Any:
    try:
        import psycopg
    except ImportError:
        raise MissingExtra('reading PostgreSQL needs psycopg: pip install "solocron[postgres]"') from None
    connection = psycopg.connect(f"postgresql://{url.partition('://')[2]}", connect_timeout=_PATIENCE)
    connection.read_only = True
    return connection


def _mysql(url: str) -> Any:
    try:
        import pymysql
    except ImportError:
        raise MissingExtra('reading MySQL needs PyMySQL: pip install "solocron[mysql]"') from None
    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname or "localhost",
        port=parts.port or 3306,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=unquote(parts.path.removeprefix("/")),
        connect_timeout=_PATIENCE,
    )
