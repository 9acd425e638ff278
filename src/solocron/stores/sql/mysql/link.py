"""One connection to MySQL or MariaDB, with every session setting that matters set by us, whatever the server's are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import pymysql
from pymysql.constants import CLIENT

from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.certificates import refusal
from solocron.stores.sql.rows import COLUMNS
from solocron.stores.sql.statements import Statement
from solocron.stores.sql.types import SqlLink
from solocron.stores.stock import has_spoken
from solocron.stores.update import Poisoned, Retry, UnknownOutcome
from solocron.stores.url import StoreUrl

__all__ = ["MySQLLink"]

_CONFLICTS = {1205: "rows stayed locked", 1213: "deadlock", 1020: "a row has changed since it was read"}
_READ_ONLY = frozenset({1290, 1792, 1836, 3032})
_NO_SCHEMA = frozenset({1146, 1054, 1932})
_NO_RIGHT = frozenset({1142, 1143, 1227, 1370})
_NO_ENTRY = frozenset({1044, 1045, 1049, 1130, 1251, 1698, 1862, 2059, 3118})
_BAD_DATA = frozenset({1048, 1062, 1153, 1264, 1292, 1300, 1366, 1406, 3140, 3141, 4038, 4037})


class MySQLLink(SqlLink):
    """A connection in autocommit, on which transactions are begun by hand."""

    def __init__(
        self,
        url: StoreUrl,
        statements: Callable[[bool], Mapping[str, Statement]],
        count: Callable[[str], None],
        *,
        options: Mapping[str, Any],
        wait: int,
        read_only: bool = False,
    ) -> None:
        self._url = url
        self._count = count
        with self.translating():
            self.db: pymysql.Connection[Any] = pymysql.connect(
                **options,
                charset="utf8mb4",
                autocommit=True,
                # Count the rows that were found, not those whose values changed, on every server alike.
                client_flag=CLIENT.FOUND_ROWS,
            )
            self.version = str(self.db.get_server_info())  # type: ignore[no-untyped-call]
            self.is_mariadb = "mariadb" in self.version.lower()
            self.sql = statements(self.is_mariadb)
            try:
                self._query(_settings(self.is_mariadb, wait), None)
                if read_only:
                    self._query("SET SESSION TRANSACTION READ ONLY", None)
            except BaseException:
                self.discard()
                raise

    # --- statements

    def all(self, name: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        self._count(name)
        with self.translating():
            return list(self._query(self.sql[name].sql, params).fetchall())

    def all_of_each(self, name: str, each: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
        """Return the rows of a query for each set of parameters, by one statement."""
        if not each:
            return []
        self._count(name)
        with self.translating():
            cursor = self.db.cursor()
            parts = [f"({cursor.mogrify(self.sql[name].sql, params)})" for params in each]
            return list(self._query(" UNION ALL ".join(parts), None).fetchall())

    def run(self, name: str, params: Mapping[str, Any]) -> int:
        return self.changed_with_id(name, params)[0]

    def changed_with_id(self, name: str, params: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many rows it found, and the number that it set by LAST_INSERT_ID()."""
        self._count(name)
        self._count("commit")
        with self.translating(commits=True):
            done = self._query(self.sql[name].sql, params)
            return int(done.rowcount), int(done.lastrowid or 0)

    def inside(self, name: str, params: Mapping[str, Any]) -> int:
        """Run a statement inside a transaction; return how many rows it found."""
        self._count(name)
        with self.translating():
            return int(self._query(self.sql[name].sql, params).rowcount)

    def many(self, name: str, rows: Sequence[tuple[Any, ...]]) -> int:
        """Run a statement for all rows of a batch, inside a transaction; return how many rows it found."""
        return self.marked(name, rows)[0]

    def marked(self, name: str, rows: Sequence[tuple[Any, ...]]) -> tuple[int, int]:
        """The same, and the number that the statement put into its answer by LAST_INSERT_ID()."""
        self._count(name)
        sql, columns = self.sql[name].sql, COLUMNS[name]
        one = ", ".join(["%s"] * len(columns))
        first = ", ".join(f"%s AS {column}" for column in columns)
        derived = " UNION ALL ".join([f"SELECT {first}", *[f"SELECT {one}"] * (len(rows) - 1)])
        sql = sql.replace("{rows}", f"({derived}) r").replace("{values}", ", ".join([f"({one})"] * len(rows)))
        with self.translating():
            done = self._query(sql, [value for row in rows for value in row])
            return int(done.rowcount), int(done.lastrowid or 0)

    def execute(self, sql: str) -> None:
        """Run something that has no name: a migration."""
        with self.translating():
            self._query(sql, None)

    def locked(self, name: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run a query and keep its rows locked until the transaction ends."""
        self._count(name)
        with self.translating():
            return list(self._query(self.sql[f"{name}_locked"].sql, params).fetchall())

    def begin(self) -> None:
        with self.translating():
            self.db.begin()

    def commit(self) -> None:
        self._count("commit")
        with self.translating(commits=True):
            self.db.commit()

    def rollback(self) -> None:
        with self.translating():
            self.db.rollback()

    def _query(self, sql: str, params: Mapping[str, Any] | Sequence[Any] | None) -> Any:
        cursor = self.db.cursor()
        cursor.execute(sql, params)
        return cursor

    # --- its life

    def is_stale(self) -> bool:
        """An idle connection has nothing to say; if it has, the server has closed it."""
        socket = getattr(self.db, "_sock", None)
        return not self.db.open or socket is None or has_spoken(socket.fileno())

    def close(self) -> None:
        try:
            if self.db.open:
                self.db.close()
        except (pymysql.Error, OSError):
            self.discard()

    def discard(self) -> None:
        # No COM_QUIT: after an interrupted call the server would take it for a part of something else.
        self.db._force_close()  # type: ignore[attr-defined]

    # --- errors

    @contextmanager
    def translating(self, *, commits: bool = False) -> Iterator[None]:
        """Say what an error of the driver means; `commits`: the server may have written before it went silent."""
        try:
            yield
        except (pymysql.Error, OSError, UnicodeError) as error:
            self._explain(error, commits)
        except RuntimeError as error:  # PyMySQL lacks the package `cryptography` that this way of logging in needs
            raise StoreRefused(
                f"{self._url.masked} cannot be logged in to like this ({error}); nothing was written. Use TLS "
                '(ssl_ca= in the URL), or: pip install "PyMySQL[rsa]".'
            ) from None

    def _explain(self, error: Exception, commits: bool) -> NoReturn:
        where = self._url.masked
        code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        text = self._url.scrub(str(error.args[-1] if error.args else type(error).__name__))
        if code in _CONFLICTS:
            raise Retry(f"{where}: {_CONFLICTS[code]}") from None
        if code in _BAD_DATA or isinstance(error, UnicodeError):
            raise Poisoned(f"{'duplicate record: ' if code == 1062 else ''}{text}") from None
        if code in _READ_ONLY:
            raise StoreRefused(
                f"{where} is a read replica or is set to read-only ({text}); nothing was written. "
                "Name the primary server."
            ) from None
        if code in _NO_RIGHT:
            raise StoreRefused(
                f"{where} refused it: the user lacks a right ({text}); nothing was written. "
                "Grant what `solocron migrate --sql` lists."
            ) from None
        if code in _NO_SCHEMA:
            raise StoreRefused(
                f"{where} has no schema of Solocron's, or an old one ({text}); nothing was written. "
                "Run: solocron migrate"
            ) from None
        if code in _NO_ENTRY:
            raise StoreRefused(
                f"{where} refused the connection ({text}); nothing was written. "
                "Check user, password, database and host."
            ) from None
        untrusted = refusal(where, text, authority="ssl_ca=", own="ssl_cert=, ssl_key=")
        if untrusted is not None:
            raise untrusted from None
        if isinstance(error, FileNotFoundError | PermissionError):  # the driver wraps those of the connection itself
            raise StoreRefused(
                f"{where}: a file that the URL names cannot be read ({text}); nothing was written. Look at ssl_ca=, "
                "ssl_cert= and ssl_key=."
            ) from None
        if isinstance(error, pymysql.OperationalError | pymysql.InterfaceError | pymysql.InternalError | OSError):
            if commits:
                raise UnknownOutcome(f"{where}: {text} while committing") from None
            raise StoreUnavailable(
                f"{where} cannot be reached or does not answer ({text}); nothing was written."
            ) from None
        raise StoreRefused(f"{where} refused a statement ({code}: {text}); nothing was written.") from None


def _settings(is_mariadb: bool, wait: int) -> str:
    """Return the settings of a session: `wait` is the number of seconds after which a held row is given up.

    A statement may take a little longer, so that a wait for rows ends as a conflict and not as a failure.
    """
    common = {
        "sql_mode": "'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
        "time_zone": "'+00:00'",
        "innodb_lock_wait_timeout": wait,
    }
    if is_mariadb:
        # A frozen client must not keep rows locked; an idle connection of the pool may stay.
        own = {"tx_isolation": "'READ-COMMITTED'", "idle_transaction_timeout": wait, "max_statement_time": wait + 0.5}
    else:
        # MySQL knows no time limit for idle transactions: the whole connection goes.
        own = {
            "transaction_isolation": "'READ-COMMITTED'",
            "wait_timeout": wait,
            "max_execution_time": wait * 1000 + 500,
        }
    return "SET SESSION " + ", ".join(f"{name} = {value}" for name, value in (common | own).items())
