"""One connection to a SQLite file. Nothing is left half open: a statement is read to its end, a transaction ends."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.sql.sqlite.file import Place
from solocron.stores.sql.sqlite.turns import Turns
from solocron.stores.sql.statements import Statement
from solocron.stores.sql.types import SqlLink
from solocron.stores.update import Poisoned, UnknownOutcome

__all__ = ["SQLiteLink"]

_PRIMARY = 0xFF
"""Extended result codes carry the primary one in their low byte."""


class SQLiteLink(SqlLink):
    """A connection, its place in the queue of writers, and what SQLite's errors mean."""

    def __init__(
        self,
        place: Place,
        statements: Mapping[str, Statement],
        count: Callable[[str], None],
        *,
        patience: float,
        synchronous: str,
        read_only: bool = False,
    ) -> None:
        self._place = place
        self._identity = place.identity()
        self._sql = statements
        self._count = count
        if self._identity is None:
            raise StoreRefused(
                f"the store {place.path} is gone; nothing was written. Restore it, or restart to begin a new one."
            )
        queue = None if read_only else place.turns
        self.turns = Turns(queue)
        self.deciding = Turns(queue, queue=1)
        try:
            self._db = sqlite3.connect(
                place.uri if read_only else place.path,
                timeout=patience,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
                uri=read_only,
            )
            if read_only:
                self.pragma("query_only = on")
            self.pragma(f"synchronous = {synchronous}")
            self.pragma("journal_size_limit = 16777216")
        except sqlite3.Error as error:
            self.turns.close()
            self.deciding.close()
            self._refuse(error)

    @property
    def identity(self) -> str:
        """Return the identity of the open file, as other processes see it too."""
        assert self._identity is not None
        device, inode = self._identity
        return f"{device:x}.{inode:x}"

    # --- statements

    def all(self, name: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        self._count(name)
        try:
            return self._db.execute(self._sql[name].sql, params).fetchall()
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            self._refuse(error)

    def run(self, name: str, params: Mapping[str, Any]) -> int:
        self._count(name)
        self._count("commit")
        with self.turns:
            return self._write(lambda: self._db.execute(self._sql[name].sql, params).rowcount, commits=True)

    def many(self, name: str, rows: Iterable[tuple[Any, ...]]) -> int:
        """Run a statement for every row, inside a transaction; how many rows it found in all."""
        self._count(name)
        return self._write(lambda: self._db.executemany(self._sql[name].sql, rows).rowcount, commits=False)

    def one(self, name: str, row: tuple[Any, ...]) -> int:
        """Run a statement of its own transaction for one row."""
        self._count(name)
        self._count("commit")
        with self.turns:
            return self._write(lambda: self._db.execute(self._sql[name].sql, row).rowcount, commits=True)

    def returning(self, name: str, row: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Run a statement of its own transaction for one row; the rows that it tells."""
        self._count(name)
        self._count("commit")
        found: list[tuple[Any, ...]] = []

        def run() -> int:
            found.extend(self._db.execute(self._sql[name].sql, row).fetchall())
            return len(found)

        with self.turns:
            self._write(run, commits=True)
        return found

    def pragma(self, text: str) -> Any:
        """Ask or set one of SQLite's own settings; not counted as a statement."""
        try:
            row = self._db.execute(f"PRAGMA {text}").fetchone()
        except sqlite3.Error as error:
            self._refuse(error)
        return None if row is None else row[0]

    def script(self, sql: str) -> None:
        """Run one statement of a migration."""
        self._write(lambda: self._db.execute(sql).rowcount, commits=False)

    # --- transactions

    def begin(self) -> None:
        """Take the write lock, after our turn in the queue has come."""
        self.turns.__enter__()
        self._write(lambda: self._db.execute("BEGIN IMMEDIATE").rowcount, commits=False)

    def commit(self) -> None:
        self._count("commit")
        self._write(lambda: self._db.execute("COMMIT").rowcount, commits=True)
        self.turns.leave()

    def rollback(self) -> None:
        """End without writing. SQLite has often done so itself when something failed."""
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error as error:
            self._refuse(error)
        finally:
            self.turns.leave()

    def leave(self) -> None:
        """Let the next ones go."""
        self.turns.leave()
        self.deciding.leave()

    def is_stale(self) -> bool:
        return self._place.identity() != self._identity

    def close(self) -> None:
        try:
            self._db.close()  # rolls back what is open
        except sqlite3.Error:  # pragma: no cover - a disk that fails even here; the descriptor is gone either way
            pass
        finally:
            self.turns.close()
            self.deciding.close()

    # --- errors

    def _write(self, work: Callable[[], int], *, commits: bool) -> int:
        try:
            return work()
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            if commits and _code(error) == sqlite3.SQLITE_IOERR:
                raise UnknownOutcome(f"{self._place.path}: {error} while committing") from error
            self._refuse(error)

    def _refuse(self, error: Exception) -> NoReturn:
        """Say what SQLite's error means for the caller."""
        path = self._place.path
        match _code(error):
            case sqlite3.SQLITE_CONSTRAINT if "UNIQUE" in str(error):
                raise Poisoned(f"duplicate record: {error}") from None
            case sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_TOOBIG | sqlite3.SQLITE_MISMATCH | None:
                raise Poisoned(f"{type(error).__name__}: {error}") from None
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                raise StoreUnavailable(
                    f"{path} is locked by another process and did not become free in time; nothing was written. "
                    "If it lasts, look for a program that keeps a transaction open."
                ) from None
            case sqlite3.SQLITE_FULL:
                raise StoreUnavailable(f"the disk of {path} is full; nothing was written. Free some space.") from None
            case sqlite3.SQLITE_IOERR:
                raise StoreUnavailable(
                    f"the disk of {path} failed ({_name(error)}); nothing was written. Look at the kernel's log."
                ) from None
            case sqlite3.SQLITE_READONLY:
                raise StoreRefused(
                    f"{path} may only be read; nothing was written. Check the mode of the file, of its folder, and "
                    "whether the disk is mounted read-only."
                ) from None
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                raise StoreRefused(
                    f"{path} is not a SQLite database, or is damaged ({error}); nothing was written. "
                    "Name another file, or restore it from a backup."
                ) from None
            case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
                raise StoreRefused(
                    f"{path} cannot be opened ({error}); nothing was written. "
                    "Check the owner and the mode of the file and of its folder."
                ) from None
        raise StoreRefused(f"{path} refused a statement ({error}); nothing was written.") from error


def _code(error: Exception) -> int | None:
    """SQLite's primary result code; None for what Python refused to bind."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and isinstance(error, sqlite3.OperationalError):
        return sqlite3.SQLITE_ERROR
    return None if code is None else int(code) & _PRIMARY


def _name(error: Exception) -> str:
    return str(getattr(error, "sqlite_errorname", error))
