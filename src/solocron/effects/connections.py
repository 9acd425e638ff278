"""The user's own database connection, from whichever library; none of them is imported here.

What is written through it belongs to the user's open transaction: it commits and rolls back with the user's own writes.
A connection that would commit each statement at once is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from solocron.errors import InvalidError

__all__ = ["ConnectionAdapter", "Reply", "Script", "adapt", "carry_out", "carry_out_async", "play"]

T = TypeVar("T")

SUPPORTED = "psycopg, PyMySQL, sqlite3, SQLAlchemy (Connection, Session) and Django connections"


@dataclass(frozen=True, slots=True)
class Reply:
    """Result of one statement."""

    rows: Sequence[Sequence[Any]]
    count: int


Script = Generator[tuple[str, tuple[Any, ...]], Reply, T]
"""Yields statements with `?` for values, and receives the reply of each. The same for every library, sync or async."""


@dataclass(frozen=True, slots=True)
class ConnectionAdapter:
    """Adapter of one connection."""

    dialect: str
    """postgresql, mysql or sqlite."""
    execute: Callable[[str, tuple[Any, ...]], Any]
    """Returns a `Reply`, or an awaitable of one if `is_async`."""
    open_transaction: bool
    """True if a write now waits for a commit of the user."""
    sibling: Callable[[], tuple[Any, Callable[[], None]]] | None = None
    """Opens another connection to the same database, if possible: the connection, and a function that closes it."""
    is_async: bool = False
    same_thread: bool = False
    """True if only the thread that made it may use it."""


def adapt(connection: Any) -> ConnectionAdapter:
    """Return the adapter of a connection. Raise for an unknown library, or if no transaction of the user is open."""
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


def play(link: ConnectionAdapter, script: Script[T]) -> T:
    """Execute the statements in the caller's transaction."""
    reply: Reply | None = None
    while True:
        try:
            sql, values = next(script) if reply is None else script.send(reply)
        except StopIteration as end:
            found: T = end.value
            return found
        reply = link.execute(sql, values)


def carry_out(connection: Any, make: Callable[[ConnectionAdapter], Script[T]]) -> T:
    """Execute a script over the user's connection."""
    link = adapt(connection)
    if link.is_async:
        raise InvalidError(
            "the calls of this connection must be awaited, which a plain function cannot do: use it from a "
            "coroutine (an async def job, `scheduler.aio`). Nothing was written."
        )
    return play(link, make(link))


async def carry_out_async(connection: Any, make: Callable[[ConnectionAdapter], Script[T]]) -> T:
    """Execute a script from a coroutine: over connections whose calls are awaited, and over plain ones in a thread."""
    if hasattr(connection, "run_sync"):  # SQLAlchemy's AsyncConnection and AsyncSession
        found: T = await connection.run_sync(lambda plain: carry_out(plain, make))
        return found
    link = adapt(connection)
    script = make(link)
    if not link.is_async:
        if link.same_thread:  # only the loop's own thread may use it
            return play(link, script)
        from solocron.dispatch.in_thread import in_thread

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


def _sqlite3(connection: Any) -> ConnectionAdapter:
    # Before Python 3.12 a transaction begins by itself unless isolation_level is None; since then `autocommit` decides.
    implicit = connection.isolation_level is not None
    if isinstance(getattr(connection, "autocommit", None), bool):
        implicit = not connection.autocommit
    return ConnectionAdapter(
        "sqlite", _through_cursor(connection, "?"), connection.in_transaction or implicit, same_thread=True
    )


def _psycopg(connection: Any) -> ConnectionAdapter:
    waits = not connection.autocommit or connection.info.transaction_status.name != "IDLE"
    if not inspect.iscoroutinefunction(type(connection).execute):
        return ConnectionAdapter("postgresql", _through_cursor(connection, "%s"), waits)

    async def execute(sql: str, values: tuple[Any, ...]) -> Reply:
        cursor = await connection.execute(sql.replace("?", "%s"), values)
        return Reply(await cursor.fetchall() if cursor.description else (), cursor.rowcount)

    return ConnectionAdapter("postgresql", execute, waits, is_async=True)


def _pymysql(connection: Any) -> ConnectionAdapter:
    in_transaction = bool(connection.server_status & 1)  # SERVER_STATUS_IN_TRANS

    def sibling() -> tuple[Any, Callable[[], None]]:
        other = type(connection)(
            host=connection.host, port=connection.port, unix_socket=connection.unix_socket, user=connection.user,
            password=connection.password, database=connection.db, autocommit=True,
        )  # fmt: skip
        return _through_cursor(other, "%s"), other.close

    return ConnectionAdapter(
        "mysql", _through_cursor(connection, "%s"), not connection.get_autocommit() or in_transaction, sibling
    )


def _sqlalchemy(connection: Any) -> ConnectionAdapter:
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
    return ConnectionAdapter(dialect, execute_on(connection), waits, sibling, same_thread=dialect == "sqlite")


def _marked(sql: str, style: str) -> str:
    if style == "qmark":
        return sql
    if style in ("format", "pyformat"):
        return sql.replace("?", "%s")
    first, *rest = sql.split("?")  # numeric, numeric_dollar
    sign = "$" if style == "numeric_dollar" else ":"
    return first + "".join(f"{sign}{number}{part}" for number, part in enumerate(rest, 1))


def _django(connection: Any) -> ConnectionAdapter:
    waits = connection.in_atomic_block or not connection.get_autocommit()

    def sibling() -> tuple[Any, Callable[[], None]]:
        other = connection.copy()
        return _through_cursor(other, "%s"), other.close

    dialect = connection.vendor
    return ConnectionAdapter(dialect, _through_cursor(connection, "%s"), waits, sibling, same_thread=True)


_DRIVERS: dict[str, Callable[[Any], ConnectionAdapter]] = {
    "psycopg": _psycopg,
    "pymysql": _pymysql,
    "sqlite3": _sqlite3,
}
_KINDS: dict[str, Callable[[Any], ConnectionAdapter]] = {"django": _django, "sqlalchemy": _sqlalchemy, **_DRIVERS}
