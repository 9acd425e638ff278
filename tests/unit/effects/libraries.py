"""One empty database for each library that connections may come from, and how its users open them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from solocron.stores.url import parse
from tests.required import require_module

LONG = 30.0
Connect = Callable[[], Any]
LIBRARIES = (
    "sqlite3", "psycopg", "pymysql", "sqlalchemy-sqlite", "sqlalchemy-session", "sqlalchemy-postgres",
    "sqlalchemy-mariadb", "django-sqlite", "django-postgres",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Database:
    """Connections of one library, each in a transaction that its user would commit; and the store's URL for it."""

    url: str
    connect: Connect


@contextmanager
def open_database(library: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Database]:
    """Connections are closed at the end."""
    kind, _, what = library.partition("-")
    if kind in ("sqlalchemy", "django"):
        require_module(kind)
    dialect = {"psycopg": "postgres", "pymysql": "mariadb"}.get(kind, what if what in ("postgres", "mariadb") else "")
    url = str(request.getfixturevalue(dialect).fresh_url()) if dialect else f"sqlite:///{folder / 'books.db'}"
    made: list[Any] = []
    closing: list[Callable[[], None]] = []
    make = globals()[f"_{kind}"](url, closing, session=what == "session")

    def connect() -> Any:
        made.append(make())
        return made[-1]

    try:
        yield Database(url, connect)
    finally:
        for one in made:
            one.close()
        for close in closing:
            close()


def mysql_options(url: str) -> dict[str, Any]:
    """What PyMySQL wants to know, from a store's URL."""
    parts = parse(url)
    host, _, port = parts.hosts.partition(":")
    password = parts.password.reveal() if parts.password else ""
    return {
        "host": host, "port": int(port), "user": parts.user, "password": password, "database": parts.path.strip("/"),
    }  # fmt: skip


def sqlalchemy_url(url: str) -> str:
    """The same database, as SQLAlchemy calls it."""
    return url.replace("postgresql://", "postgresql+psycopg://").replace("mariadb://", "mysql+pymysql://")


def _file(url: str) -> str:
    return url.removeprefix("sqlite:///")


def _sqlite3(url: str, closing: list[Any], **_: Any) -> Connect:
    return lambda: sqlite3.connect(_file(url), timeout=LONG, check_same_thread=False)


def _psycopg(url: str, closing: list[Any], **_: Any) -> Connect:
    import psycopg

    return lambda: psycopg.connect(url)


def _pymysql(url: str, closing: list[Any], **_: Any) -> Connect:
    import pymysql

    return lambda: pymysql.connect(**mysql_options(url))


def _sqlalchemy(url: str, closing: list[Any], *, session: bool = False) -> Connect:
    import sqlalchemy
    from sqlalchemy.orm import Session

    engine = sqlalchemy.create_engine(sqlalchemy_url(url))
    closing.append(engine.dispose)
    return lambda: Session(engine) if session else engine.connect()


def _django(url: str, closing: list[Any], **_: Any) -> Connect:
    import django
    from django.conf import settings

    if not settings.configured:
        settings.configure(USE_TZ=True)
        django.setup()
    from django.db.utils import ConnectionHandler

    if url.startswith("sqlite"):
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": _file(url)}
    else:
        from psycopg.conninfo import conninfo_to_dict

        found = conninfo_to_dict(url)
        database = {
            "ENGINE": "django.db.backends.postgresql", "NAME": found["dbname"], "HOST": found["host"],
            "PORT": found.get("port", ""), "USER": found.get("user", ""), "PASSWORD": found.get("password", ""),
        }  # fmt: skip

    def make() -> Any:
        wrapper = ConnectionHandler({"default": database})["default"]
        wrapper.inc_thread_sharing()
        wrapper.set_autocommit(False)
        return wrapper

    return make
