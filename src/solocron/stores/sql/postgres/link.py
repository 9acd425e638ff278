"""One connection to PostgreSQL. No call waits beyond its bound, and every error says what it means for the data."""

# psycopg takes literal strings only; these statements come from the package's own SQL files.
# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import psycopg
from psycopg import errors

from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.certificates import refusal
from solocron.stores.sql.postgres.session import Pooled, Road, SessionSettings
from solocron.stores.sql.statements import Statement
from solocron.stores.sql.types import SqlLink
from solocron.stores.stock import has_spoken
from solocron.stores.update import Poisoned, Retry, UnknownOutcome
from solocron.stores.url import StoreUrl

__all__ = ["GateShut", "LostRow", "PostgresLink", "SessionGone", "Socket"]

_NO_OPTIONS = ("unsupported startup parameter", "support command-line options")
"""How PgBouncer and Amazon's proxy refuse `options`; while connecting, libpq gives no code."""
_CONFLICTS = {"40001": "serialization failure", "40P01": "deadlock", "55P03": "rows stayed locked"}


class LostRow(Retry):
    """A row was not the one that was read; the whole batch was rolled back."""


class SessionGone(Exception):
    """The session that the batch is tied to is not live; the whole batch was rolled back."""


class GateShut(Exception):
    """The gate that the batch names does not stand open; the whole batch was rolled back."""


class SilentServer(psycopg.OperationalError):
    """The server has not answered within the bound of a call."""


class Socket(psycopg.Connection[tuple[Any, ...]]):
    """A connection whose calls end: a server that is frozen or cut off must not cost a lease."""

    patience: float = 5.0

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
        return super().wait(_bounded(gen, self.patience), *args, **kwargs)


def _bounded(gen: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """The same generator, which psycopg wakes several times a second, until the time is over."""
    end = time.monotonic() + seconds
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > end:
                raise SilentServer(f"no answer within {seconds:g} s")
            wanted = gen.send(ready)
    except StopIteration as stop:
        return stop.value


class PostgresLink(SqlLink):
    """A connection in autocommit, on which transactions are begun by hand. `pooled`: why its road is not the URL's."""

    def __init__(
        self,
        url: StoreUrl,
        statements: Mapping[str, Statement],
        count: Callable[[str], None],
        *,
        conninfo: Mapping[str, Any],
        patience: float,
        road: Road,
        pooled: str,
        settings: SessionSettings,
    ) -> None:
        """Raise `Pooled` where the road is not what it was taken for."""
        self.road = road
        self.pooled = pooled
        self._url = url
        self._sql = statements
        self._count = count
        self._begin = settings.begin(road)
        with self.translating():
            try:
                self.db = Socket.connect(
                    **conninfo, autocommit=True, prepare_threshold=None if road is Road.TRANSACTION else 5
                )
            except psycopg.OperationalError as error:
                self._notice_refused_settings(error)
                raise
        self.db.patience = patience
        try:
            if self.db.pgconn.parameter_status(b"in_hot_standby") == b"on":
                self._refuse_replica()
            self._settle(settings)
        except BaseException:
            self.close()
            raise

    def _settle(self, settings: SessionSettings) -> None:
        """Make sure that the session is ours and is as we asked for: a pooler may have dropped what we sent."""
        if self.road is Road.TRANSACTION:
            return  # each transaction sees to it
        with self.translating():
            if self.road is Road.SESSION:
                self.db.execute(settings.session.encode())
            process, hold = self.db.execute(settings.question.encode()).fetchall()[0]
        if self.road is Road.SESSION and not hold:
            raise StoreRefused(
                f"{self._url.masked} has pgbouncer=session, but a session does not keep what is set in it; nothing was "
                "written. The pooler is in transaction mode: write pgbouncer=1."
            )
        if self.road is Road.DIRECT and process != self.db.info.backend_pid:
            raise Pooled("the session that answers is not the one that was opened")
        if not hold:
            raise Pooled("the timeouts of the session are not those that were asked for")

    def _notice_refused_settings(self, error: psycopg.OperationalError) -> None:
        """Raise for a pooler that takes no `options`; what else is wrong is the caller's to explain."""
        text = self._url.scrub(str(error))
        if not any(words in text for words in _NO_OPTIONS):
            return
        if self.road is Road.DIRECT:
            raise Pooled("it does not take the settings of a session along with the login") from None
        raise StoreRefused(
            f"{self._url.masked}: the pooler refuses a parameter of the URL ({text.strip().splitlines()[-1]}); nothing "
            "was written. Take options= out of the URL, or allow it there (ignore_startup_parameters of PgBouncer)."
        ) from None

    # --- statements

    def all(self, name: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        self._count(name)
        with self.translating():
            return self.db.execute(self._sql[name].sql, params).fetchall()

    def run(self, name: str, params: Mapping[str, Any]) -> int:
        self._count(name)
        self._count("commit")
        with self.translating(commits=True):
            return self.db.execute(self._sql[name].sql, params).rowcount

    def returning(self, name: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run a writing statement in its own transaction; return its rows."""
        return self.write_alone(name, self._sql[name].sql, params)

    def execute(self, sql: str) -> None:
        """Run something that has no name: a migration, a setting."""
        with self.translating():
            self.db.execute(sql)

    def begin_with(self, name: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Begin a transaction and run its first statement."""
        self._count(name)
        with self.translating():
            # Not in one pipeline: psycopg ends one with a Flush after the Sync, and a Flush disarms the server's
            # idle_in_transaction_session_timeout. A client frozen right after it would hold its rows forever.
            self.db.execute(self._begin.encode())
            return self.db.execute(self._sql[name].sql, params).fetchall()

    def commit_with(self, name: str, sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run the last statement of a transaction and commit, in one round trip; an error of it stops the commit."""
        self._count(name)
        self._count("commit")
        with self.translating(commits=True):
            with self.db.pipeline():
                cursor = self.db.execute(sql, params)
                self.db.execute("COMMIT")
            return cursor.fetchall()

    def write_alone(self, name: str, sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """As `returning`, for a statement that was put together for this batch."""
        self._count(name)
        self._count("commit")
        with self.translating(commits=True):
            return self.db.execute(sql, params).fetchall()

    def rollback(self) -> None:
        with self.translating():
            if self.db.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                self.db.execute("ROLLBACK")

    # --- its life

    @property
    def verified(self) -> bool:
        """Return whether the server had to prove its identity; `require` checks too where an authority is named."""
        told = {option.keyword: option.val for option in self.db.pgconn.info}
        mode = told.get(b"sslmode")
        return mode in (b"verify-ca", b"verify-full") or (mode == b"require" and bool(told.get(b"sslrootcert")))

    def is_stale(self) -> bool:
        """An idle connection has nothing to say; if it has, the server has closed it."""
        return self.db.closed or has_spoken(self.db.fileno())

    def close(self) -> None:
        self.db.close()

    # --- errors

    @contextmanager
    def translating(self, *, commits: bool = False) -> Iterator[None]:
        """Say what an error of the driver means; `commits`: the server may have written before it went silent."""
        try:
            yield
        except psycopg.Error as error:
            self._explain(error, commits)

    def _explain(self, error: psycopg.Error, commits: bool) -> NoReturn:
        where, state = self._url.masked, error.sqlstate
        text = self._url.scrub(str(error)).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if state in _CONFLICTS:
            raise Retry(f"{where}: {_CONFLICTS[state]}") from None
        if state == "2201E":
            raise LostRow(f"{where}: others were faster") from None
        if state == "22012":
            raise SessionGone from None
        if state == "2201F":
            raise GateShut from None
        if state == "25006":
            self._refuse_replica()
        if state == "42501":
            raise StoreRefused(
                f"{where} refused it: the user lacks a right ({text}); nothing was written. "
                "Grant what `solocron migrate --sql` lists."
            ) from None
        if state in ("42P01", "42703", "3F000"):
            raise StoreRefused(
                f"{where} has no schema of Solocron's, or an old one ({text}); nothing was written. "
                "Run: solocron migrate"
            ) from None
        if state in ("42P05", "26000"):
            raise StoreRefused(
                f"{where}: a pooler in between shares sessions among its clients ({text}); nothing was written. "
                "Write pgbouncer=1 into the URL."
            ) from None
        if state is not None and state[:2] in ("22", "23", "54", "21"):
            duplicate = "duplicate record: " if state == "23505" else ""
            raise Poisoned(f"{duplicate}{text}") from None
        untrusted = refusal(where, text, authority="sslrootcert=", own="sslcert=, sslkey=") if state is None else None
        if untrusted is not None:
            raise untrusted from None
        if _is_refusal(error, state, text):
            raise StoreRefused(
                f"{where} refused the connection ({text}); nothing was written. "
                "Check user, password, database and pg_hba.conf."
            ) from None
        if state is None or state[:2] in ("08", "57", "53", "58", "25") or isinstance(error, errors.OperationalError):
            if commits:
                raise UnknownOutcome(f"{where}: {text} while committing") from None
            raise StoreUnavailable(
                f"{where} cannot be reached or does not answer ({text}); nothing was written."
            ) from None
        raise StoreRefused(f"{where} refused a statement ({state}: {text}); nothing was written.") from None

    def _refuse_replica(self) -> NoReturn:
        raise StoreRefused(
            f"{self._url.masked} is a read replica or is set to read-only; nothing was written. "
            "Name the primary server."
        ) from None


def _is_refusal(error: psycopg.Error, state: str | None, text: str) -> bool:
    """A server that is there but will not have us. While connecting, libpq gives no code: only the words are left."""
    if state is not None:
        return state[:2] in ("28", "3D")
    words = (
        *("authentication failed", "no pg_hba.conf entry", "does not exist", "not permitted to log in", "invalid"),
        *("no such database", "no such user"),  # PgBouncer's words
    )
    return isinstance(error, psycopg.OperationalError) and any(word in text for word in words)
