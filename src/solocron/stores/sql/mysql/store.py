"""The contract on MySQL 8 and MariaDB 10.6 or later: READ COMMITTED, rows locked in the order of their names.

Rows are locked first and the clock is read after that, in a statement of its own: NOW() is the time at which a
statement began, also if it then waited for a lock.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import cache
from typing import Any

from solocron.clock import MILLISECOND, SECOND
from solocron.errors import ConfigurationError, StoreRefused
from solocron.model.change import Kind
from solocron.stores.contract import Capabilities, Check, Due, Gate, Tier, Which
from solocron.stores.documents import gate_in, is_open
from solocron.stores.drafts import Draft, Selection
from solocron.stores.mailbox import Mailbox
from solocron.stores.sql import migrations
from solocron.stores.sql.mysql.link import MySQLLink
from solocron.stores.sql.rows import COLUMNS, Batch
from solocron.stores.sql.statements import Statement, load
from solocron.stores.sql.store import SqlStore
from solocron.stores.sql.types import Committed, arrange
from solocron.stores.update import Poisoned, Retry
from solocron.stores.url import IDENTIFIER, StoreUrl, hidden, revealed

__all__ = ["MySQLStore"]

OLDEST = {"MariaDB": (10, 6), "MySQL": (8, 0, 17)}
_AGAIN = 20 * MILLISECOND
_POLL = 1.1
"""Seconds between two looks at the change counter."""


class MySQLStore(SqlStore[MySQLLink]):
    """A namespace in a MySQL or MariaDB database."""

    options = frozenset({"prefix", "ssl_ca", "ssl_cert", "ssl_key", "ssl", "unix_socket"})

    def __init__(self, url: StoreUrl, *, namespace: str = "default", lease: timedelta = timedelta(seconds=15)) -> None:
        super().__init__(url, namespace=namespace, lease=lease)
        self._known = ("", "")
        """The state of the namespace's document as it was last read, and the server that said so."""
        self.prefix = url.options.get("prefix", "solocron_")
        if not IDENTIFIER.fullmatch(self.prefix):
            raise ConfigurationError(
                f"{url.masked}: prefix= must be a small letter or _, then up to 47 of a-z, 0-9 and _; nothing was "
                "opened."
            )
        self.database = url.path.strip("/")
        self._arguments = _connection_options(url, self._lease)
        self._tier = Capabilities(tier=Tier.A, why="not opened yet", notifies=True)

    @property
    def capabilities(self) -> Capabilities:
        return self._tier

    # --- opening

    def _connect(self, *, read_only: bool = False) -> MySQLLink:
        return MySQLLink(
            self._url,
            lambda is_mariadb: statements(self.prefix, is_mariadb),
            self.count,
            options=revealed(self._arguments),
            wait=_wait(self._lease),
            read_only=read_only,
        )

    def _prepare(self) -> None:
        with self.pool.link() as link:
            self._inspect(link)
            if not migrations.SchemaStatus(self._schema(link)).current:
                self._migrate(link)
            self.is_news(self._notifications(link))

    def _inspect(self, link: MySQLLink) -> None:
        flavour, version = version_of(link)
        if version < OLDEST[flavour]:
            oldest = ".".join(map(str, OLDEST[flavour]))
            raise StoreRefused(
                f"{self.url} runs {flavour} {'.'.join(map(str, version))}; at least {oldest} is needed. Nothing was "
                "written."
            )
        found = settings_of(link)
        if is_read_only(found):
            raise StoreRefused(
                f"{self.url} is a read replica or is set to read-only; nothing was written. Name the primary server."
            )
        self._tier = tier_of(found)

    def schema(self) -> int | None:
        with self.pool.link() as link:
            return self._schema(link)

    def _schema(self, link: MySQLLink) -> int | None:
        if not link.all("tables", {"meta": f"{self.prefix}meta"})[0][0]:
            return None
        return migrations.check_compatible(dict(link.all("schema_version", {})), self.url)

    def _migrate(self, link: MySQLLink) -> None:
        """Apply what is missing while other clients wait at the same named lock; a table is never half made."""
        lock = {"lock": f"solocron {self.database} {self.prefix}"[:64], "seconds": 60}
        if link.all("migrating", lock)[0][0] != 1:
            raise StoreRefused(f"{self.url}: another process has been migrating for 60 s; nothing was written.")
        try:
            applied = self._schema(link)
            if not migrations.SchemaStatus(applied).current:
                for statement in migrations.steps("mysql", words_for(self.prefix, link.is_mariadb), applied):
                    link.execute(statement)
        except StoreRefused as error:
            raise StoreRefused(
                f"the schema of {self.url} is missing or old, and this user may not change it; nothing was written. "
                "Run `solocron migrate` as a user who may, then start again."
            ) from error
        finally:
            link.all("migrated", lock)

    # --- time

    def now(self, link: MySQLLink) -> int:
        return self._observed(link.all("clock", {"shift": self._shift})[0][0])

    def _observed(self, now: int) -> int:
        self.cache.observe(now - self._shift)
        return now

    # --- documents

    def among(self, values: Sequence[str]) -> tuple[str | None, ...]:
        # An empty list is no SQL. NULL equals nothing; but NOT IN (NULL) is never true, so there a text stands in.
        return tuple(values) or ("\x01",)

    def newest_rows(self, jobs: Sequence[str], limit: int) -> list[tuple[Any, ...]]:
        # A join with the edge of each job, as on the others, reads every record of the jobs: the optimizer takes no
        # range that another table's row bounds, and MariaDB has no LATERAL.
        wanted = [{"namespace": self._namespace, "job": job, "limit": limit} for job in jobs]
        return self.call(lambda link: link.all_of_each("newest_of_job", wanted))

    def select(self, link: MySQLLink, which: Which, session: str | None, *, change: bool) -> Selection:
        more = {"namespace": self._namespace, "shift": self._shift, "session": session}
        if change:
            link.begin()
        if isinstance(which, Due):
            return self._select_due(link, which, more, change)
        name, params = self.selecting(which)
        if not change:
            return Selection(arrange(which, link.all(name, params)), 0)
        rows = link.locked(name, params)
        now, alive = link.all("after_locks", more)[0]
        return Selection(arrange(which, rows), self._observed(now), alive=bool(alive))

    def _select_due(self, link: MySQLLink, which: Due, more: Mapping[str, Any], change: bool) -> Selection:
        params = {
            **more,
            "handlers": self.among(sorted(which.handlers)),
            "exclude": self.among(sorted(which.exclude)),
            "limit": which.limit,
        }
        found: list[tuple[Any, ...]] = []
        for pool in sorted(which.pools):
            found += (link.locked if change else link.all)("due_jobs", params | {"pool": pool})
        found.sort(key=lambda row: (row[4], row[0]))
        found = found[: which.limit]
        rows = arrange(which, [row[:4] for row in found])
        if not change:
            return Selection(rows, 0)
        params["exclude"] = self.among(sorted({*which.exclude, *rows}))
        now, alive, moments = 0, True, []
        for pool in sorted(which.pools):
            now, alive, *some = link.all("after_due", params | {"pool": pool})[0]
            moments += [moment for moment in some if moment is not None]
        following = min(moments, default=None)
        if following is not None and following <= now and len(rows) < which.limit:
            following = now + _AGAIN  # due, but others are just changing them
        return Selection(rows, self._observed(now), alive=bool(alive), next_due=following)

    def who_answers(self, link: MySQLLink) -> str:
        return str(link.all("who_answers", {})[0][0])

    def commit(
        self, link: MySQLLink, drafts: Sequence[Draft], session: str | None, selection: Selection, gate: Gate | None
    ) -> Committed:
        batch = Batch.of(self._namespace, drafts[0].kind, drafts)
        if selection.latest is not None:
            outcome = self._renew(link, batch, drafts[0], selection)
        else:
            outcome = self._write(link, batch, session, gate)
            if batch.kind is Kind.SESSION and batch.alone and outcome.alive:
                self._known = link.all("namespace", {"namespace": self._namespace})[0]
        return outcome

    def abandon(self, link: MySQLLink) -> None:
        link.rollback()

    def _renew(self, link: MySQLLink, batch: Batch, one: Draft, selection: Selection) -> Committed:
        if batch.notifies or not batch.alone or not batch.redefined:
            return Committed(lost={one.name})  # not a plain renewal: ask the server first
        columns = dict(zip(COLUMNS["document_changed"], batch.redefined[0], strict=True))
        window = {"now": selection.now, "latest": selection.latest, "shift": self._shift}
        body, identity = known = self._known
        found, told = link.changed_with_id(
            "session_renewed", columns | window | {"known_body": body, "known_server": identity}
        )
        if not found:
            return Committed(lost={one.name})
        if not told:
            return Committed()
        same, holds = told // 2 % 2 == 1, told % 2 == 1
        if not same:  # the engine asks what it is now; the next renewal compares with that
            known = link.all("namespace", {"namespace": self._namespace})[0]
            self._known = known
        gate = (gate_in(known[0]), known[1]) if known[0] else None
        return Committed(holds=holds, told=self._observed(told // 4), gate=gate)

    def _write(self, link: MySQLLink, batch: Batch, session: str | None, gate: Gate | None) -> Committed:
        # A batch of sessions may end the very one that is tested: it lives until the commit.
        first = batch.kind is Kind.SESSION
        refused = self._refused(link, session, gate) if first else None
        if refused is not None:
            return refused
        for name, rows in batch.writes():
            if rows and self._swap(link, name, rows) != len(rows):
                raise Retry(f"{self.url}: others were faster")
        short = False
        for name, rows in batch.follow_ups():
            marked = bool(rows) and link.marked(name, rows)[1] > 0
            short = short or (marked and name == "record_appended")
        refused = None if first else self._refused(link, session, gate)
        if refused is not None:
            return refused
        if batch.notifies:
            self.notifying(1)
            link.inside("notify", {"namespace": self._namespace})
        link.commit()
        return Committed(short=short)

    def _refused(self, link: MySQLLink, session: str | None, gate: Gate | None) -> Committed | None:
        """Roll back and say why, if the session is not live or the gate not open."""
        if session is None:
            return None
        own = link.all("session_is_live", {"namespace": self._namespace, "session": session})
        if own and (gate is None or is_open(gate, *own[0])):
            return None
        link.rollback()
        return Committed(shut=True) if own else Committed(alive=False)

    def _swap(self, link: MySQLLink, name: str, rows: Sequence[tuple[Any, ...]]) -> int:
        try:
            return link.many(name, rows)
        except Poisoned as error:
            if name.endswith("_added") and "duplicate" in str(error):
                raise Retry(f"{self.url}: others were faster") from None
            raise

    # --- the user's own transactions

    def mailbox(self) -> AbstractContextManager[Mailbox]:
        from solocron.stores.sql.mysql.mailbox import open_mailbox

        return open_mailbox(self)

    # --- waking up

    def signal(self) -> None:
        self._run("notify", {})

    def wait(self, timeout: float) -> bool:
        end = time.monotonic() + timeout
        slept = False
        while True:
            notifications, requests = self.call(self._signals)
            # Requests that came without a notification; one that cannot be taken in wakes a node once a second at most.
            if self.is_news(notifications) or (requests and slept):
                return True
            left = end - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_POLL, left))
            slept = True

    def _signals(self, link: MySQLLink) -> tuple[int, bool]:
        notifications, requests = link.all("signals", {"namespace": self._namespace})[0]
        return int(notifications or 0), bool(requests)

    def _notifications(self, link: MySQLLink) -> int:
        return self._signals(link)[0]

    def checks(self) -> Sequence[Check]:
        from solocron.stores.sql.mysql.checks import checks

        return checks(self)


def version_of(link: MySQLLink) -> tuple[str, tuple[int, ...]]:
    """Return which of the two it is, and its version."""
    text = link.version.removeprefix("5.5.5-")  # MariaDB says so first, for the sake of old clients
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
    version = tuple(map(int, numbers.groups())) if numbers else (0,)
    return ("MariaDB" if link.is_mariadb else "MySQL"), version


def settings_of(link: MySQLLink) -> dict[str, str]:
    """Return the server's settings that matter to a store."""
    return {name.lower(): str(value) for name, value in link.all("settings", {})}


def is_read_only(found: Mapping[str, str]) -> bool:
    return any(found.get(name, "OFF") == "ON" for name in ("super_read_only", "innodb_read_only", "read_only"))


def tier_of(found: Mapping[str, str]) -> Capabilities:
    """Return the tier of the server as it is set up."""
    if found.get("wsrep_on") == "ON":
        return Capabilities(
            tier=Tier.C, why="Galera: lost updates and stale reads were seen in healthy clusters", notifies=True
        )
    if found.get("innodb_flush_log_at_trx_commit", "1") != "1":
        return Capabilities(
            tier=Tier.B, why="innodb_flush_log_at_trx_commit is not 1: a crash forgets the last commits", notifies=True
        )
    return Capabilities(tier=Tier.A, why="primary, durable commits", notifies=True)


def _wait(lease: int) -> int:
    """Return how long a client may hold a row or wait for one: a fifth of the lease, in whole seconds."""
    return max(1, lease // SECOND // 5)


def _connection_options(url: StoreUrl, lease: int) -> dict[str, Any]:
    host, port = _host_and_port(url)
    database = url.path.strip("/")
    if not database or "/" in database:
        raise ConfigurationError(f"{url.masked}: name the database after the host; nothing was opened.")
    bound = max(_wait(lease) + 0.75, lease / SECOND * 4 / 15)
    options: dict[str, Any] = {
        "host": host,
        "port": port,
        "user": url.user,
        "password": url.password or "",
        "database": database,
        "connect_timeout": max(1, int(lease / SECOND / 3)),
        "read_timeout": bound,
        "write_timeout": bound,
    }
    theirs = url.options
    if theirs.get("unix_socket"):
        options["unix_socket"] = theirs["unix_socket"]
    if theirs.get("ssl") in ("0", "off", "false"):
        options["ssl_disabled"] = True
    elif theirs.get("ssl_ca"):
        options |= {name: theirs[name] for name in ("ssl_ca", "ssl_cert", "ssl_key") if name in theirs}
        options |= {"ssl_verify_cert": True, "ssl_verify_identity": True}
    return hidden(options)


def _host_and_port(url: StoreUrl) -> tuple[str, int]:
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]*))(?::(\d{1,5}))?", url.hosts)
    if match is None or int(match[3] or 0) > 65535:
        raise ConfigurationError(f"the host and port of {url.masked} cannot be read; nothing was opened.")
    return match[1] or match[2] or "127.0.0.1", int(match[3] or 3306)


def words_for(prefix: str, is_mariadb: bool) -> dict[str, str]:
    """Return table names, and the collation that this kind of server has for names."""
    return migrations.words("mariadb" if is_mariadb else "mysql", prefix)


@cache
def statements(prefix: str, is_mariadb: bool) -> dict[str, Statement]:
    """Return the statements for these table names."""
    clock = "CAST(UNIX_TIMESTAMP({}(6)) * 1000000 AS SIGNED)"
    words = words_for(prefix, is_mariadb) | {
        "share": "LOCK IN SHARE MODE",
        "lock": "FOR UPDATE",
        "text": "CHAR",
        "clock": clock.format("SYSDATE"),
        "statement_clock": clock.format("NOW"),
        # MariaDB has nothing that identifies a server by itself, as the UUID of MySQL does.
        "identity": "left(sha1(concat_ws(' ', @@hostname, @@port, @@server_id, @@datadir)), 16)"
        if is_mariadb
        else "@@server_uuid",
    }
    words |= {"rows": "{rows}", "values": "{values}"}  # filled in when their number is known
    return load(
        ("common", "mysql"), words, {"in": lambda name: f"IN :{name}", "by": lambda name: ""}, driver="pyformat"
    )
