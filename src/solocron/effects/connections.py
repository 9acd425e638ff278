"""The user's own database connection, whichever library it comes from; none of them is imported here.

What is written through it belongs to the user's open transaction: it commits and rolls back with the user's own
writes. A connection that would commit each statement at once is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from solocron.errors import InvalidError

__all__ = ["Link", "Reply", "Script", "adapt", "carry_out", "carry_out_async", "play"]

T = TypeVar("T")

SUPPORTED = "psycopg, PyMySQL, sqlite3, SQLAlchemy (Connection, Session) and Django connections"


@dataclass(frozen=True, slots=True)
class Reply:
    """What one statement brought."""

    rows: Sequence[Sequence[Any]]
    count: int


Script = Generator[tuple[str, tuple[Any, ...]], Reply, T]
"""Statements with `?` for values, one after the other, each sent its reply: the same for every library and colour."""


@dataclass(frozen=True, slots=True)
class Link:
    """How to talk to one connection."""

    dialect: str
    """postgresql, mysql or sqlite."""
    execute: Callable[[str, tuple[Any, ...]], Any]
    """Answers a `Reply`, or an awaitable of one where `is_async`."""
    open_transaction: bool
    """Whether what is written now waits for a commit of the user's."""
    sibling: Callable[[], tuple[Any, Callable[[], None]]] | None = None
    """Another connection to the same database, and how to close it, where one can be had."""
    is_async: bool = False
    same_thread: bool = False
    """Whether it may only be used by the thread that made it."""


def adapt(connection: Any) -> Link:
    """The link of a connection; refuses what it does not know, and what has no transaction of the user's."""
    packages = {base.__module__.partition(".")[0] for base in type(connection).__mro__}
    for package, make in _KINDS.items():
        if package in packages:
            link = make(connection)
            break
    else:
        raise InvalidError(
            f"a {type(connection).__module__}.{type(connection).__qualname__} is not a connection that can be used "
            f"here; known are {SUPPORTED}. Nothing was written."
        )
    if link.dialect not in ("postgresql", "mysql", "sqlite"):
        raise InvalidError(
            f"a {link.dialect} database is not known here: only PostgreSQL, MySQL, MariaDB and SQLite are."
        )
    if not link.open_transaction:
        raise InvalidError(
            "this connection commits every statement at once, so nothing could be tied to your transaction; nothing "
            "was written. Begin one first (BEGIN, `with connection.transaction():`, `atomic()`), or switch autocommit "
            "off."
        )
    return link


def play(link: Link, script: Script[T]) -> T:
    """Carry the statements out, in the caller's transaction."""
    reply: Reply | None = None
    while True:
        try:
            sql, values = next(script) if reply is None else script.send(reply)
        except StopIteration as end:
            found: T = end.value
            return found
        reply = link.execute(sql, values)


def carry_out(connection: Any, make: Callable[[Link], Script[T]]) -> T:
    """Carry a script out over the user's connection."""
    link = adapt(connection)
    if link.is_async:
        raise InvalidError(
            "the calls of this connection have to be awaited, and here nobody can: use it from a coroutine (an async "
            "def job, `scheduler.aio`). Nothing was written."
        )
    return play(link, make(link))


async def carry_out_async(connection: Any, make: Callable[[Link], Script[T]]) -> T:
    """The same from a coroutine: over connections whose calls are awaited, and over plain ones beside the loop."""
    if hasattr(connection, "run_sync"):  # SQLAlchemy's AsyncConnection and AsyncSession
        found: T = await connection.run_sync(lambda plain: carry_out(plain, make))
        return found
    link = adapt(connection)
    script = make(link)
    if not link.is_async:
        if link.same_thread:  # the loop's own thread is the only one that may use it
            return play(link, script)
        from solocron.effects.locks.aio import in_thread

        return await in_thread(lambda: play(link, script), alone=True)
    reply: Reply | None = None
    while True:
        try:
            sql, values = next(script) if reply is None else script.send(reply)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        reply = await link.execute(sql, values)


def _through_cursor(connection: Any, mark: str) -> Callable[[str, tuple[Any, ...]], Reply]:
    def execute(sql: str, values: tuple[Any, ...]) -> Reply:
        cursor = connection.cursor()
        try:
            cursor.execute(sql.replace("?", mark), values)
            return Reply(cursor.fetchall() if cursor.description else (), cursor.rowcount)
        finally:
            cursor.close()

    return execute


def _sqlite3(connection: Any) -> Link:
    # Before Python 3.12 a transaction begins by itself unless isolation_level is None; from then on `autocommit` tells.
    implicit = connection.isolation_level is not None
    if isinstance(getattr(connection, "autocommit", None), bool):
        implicit = not connection.autocommit
    return Link("sqlite", _through_cursor(connection, "?"), connection.in_transaction or implicit, same_thread=True)


def _psycopg(connection: Any) -> Link:
    waits = not connection.autocommit or connection.info.transaction_status.name != "IDLE"
    if not inspect.iscoroutinefunction(type(connection).execute):
        return Link("postgresql", _through_cursor(connection, "%s"), waits)

    async def execute(sql: str, values: tuple[Any, ...]) -> Reply:
        cursor = await connection.execute(sql.replace("?", "%s"), values)
        return Reply(await cursor.fetchall() if cursor.description else (), cursor.rowcount)

    return Link("postgresql", execute, waits, is_async=True)


def _pymysql(connection: Any) -> Link:
    in_transaction = bool(connection.server_status & 1)  # SERVER_STATUS_IN_TRANS

    def sibling() -> tuple[Any, Callable[[], None]]:
        other = type(connection)(
            host=connection.host, port=connection.port, unix_socket=connection.unix_socket, user=connection.user,
            password=connection.password, database=connection.db, autocommit=True,
        )  # fmt: skip
        return _through_cursor(other, "%s"), other.close

    return Link("mysql", _through_cursor(connection, "%s"), not connection.get_autocommit() or in_transaction, sibling)


def _sqlalchemy(connection: Any) -> Link:
    if hasattr(connection, "run_sync"):
        raise InvalidError(
            "hand an asynchronous SQLAlchemy connection over through its own run_sync, or use it in a coroutine job, "
            "where `await run.guard(connection)` does so. Nothing was written."
        )
    if not hasattr(connection, "exec_driver_sql"):  # a Session
        connection = connection.connection()
    style = connection.dialect.paramstyle
    options = connection.get_execution_options()
    waits = options.get("isolation_level") != "AUTOCOMMIT"
    raw = getattr(connection.connection, "dbapi_connection", None)
    packages = {base.__module__.partition(".")[0] for base in type(raw).__mro__}
    known = next((make for package, make in _DRIVERS.items() if package in packages), None)
    if known is not None:
        waits = waits and known(raw).open_transaction

    def execute_on(one: Any) -> Callable[[str, tuple[Any, ...]], Reply]:
        def execute(sql: str, values: tuple[Any, ...]) -> Reply:
            result = one.exec_driver_sql(_marked(sql, style), values)
            return Reply([tuple(row) for row in result] if result.returns_rows else (), result.rowcount)

        return execute

    def sibling() -> tuple[Any, Callable[[], None]]:
        other = connection.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        return execute_on(other), other.close

    dialect = "mysql" if connection.dialect.name == "mariadb" else connection.dialect.name
    return Link(dialect, execute_on(connection), waits, sibling, same_thread=dialect == "sqlite")


def _marked(sql: str, style: str) -> str:
    if style == "qmark":
        return sql
    if style in ("format", "pyformat"):
        return sql.replace("?", "%s")
    first, *rest = sql.split("?")  # numeric, numeric_dollar
    sign = "$" if style == "numeric_dollar" else ":"
    return first + "".join(f"{sign}{number}{part}" for number, part in enumerate(rest, 1))


def _django(connection: Any) -> Link:
    waits = connection.in_atomic_block or not connection.get_autocommit()

    def sibling() -> tuple[Any, Callable[[], None]]:
        other = connection.copy()
        return _through_cursor(other, "%s"), other.close

    dialect = connection.vendor
    return Link(dialect, _through_cursor(connection, "%s"), waits, sibling, same_thread=True)


_DRIVERS: dict[str, Callable[[Any], Link]] = {"psycopg": _psycopg, "pymysql": _pymysql, "sqlite3": _sqlite3}
_KINDS: dict[str, Callable[[Any], Link]] = {"django": _django, "sqlalchemy": _sqlalchemy, **_DRIVERS}
