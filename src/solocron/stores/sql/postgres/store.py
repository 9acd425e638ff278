"""The contract on PostgreSQL: two statements per update, READ COMMITTED, rows locked in the order of their names.

The first locks the rows and then reads the clock, the second writes the whole batch and makes sure that the session
lives; the commit travels with it. Whatever stops the batch raises inside its statement, so that the COMMIT that
follows on its heels cannot happen.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from solocron.clock import MILLISECOND, SECOND
from solocron.errors import ConfigurationError, StoreRefused
from solocron.model.change import Kind
from solocron.stores.contract import Capabilities, Check, Due, Gate, Tier, Which
from solocron.stores.documents import gate_in
from solocron.stores.drafts import Draft, Selection
from solocron.stores.mailbox import Mailbox
from solocron.stores.sql import migrations
from solocron.stores.sql.postgres.link import GateShut, PostgresLink, SessionGone
from solocron.stores.sql.postgres.listener import Listener
from solocron.stores.sql.postgres.session import Pooled, Road, SessionSettings, road_of
from solocron.stores.sql.postgres.sql import statements, writing
from solocron.stores.sql.rows import COLUMNS, Batch, as_json
from solocron.stores.sql.store import SqlStore
from solocron.stores.sql.types import Committed, arrange
from solocron.stores.url import IDENTIFIER, StoreUrl, hidden, revealed

__all__ = ["PostgresStore"]

log = logging.getLogger("solocron")

OLDEST = 120000
_OURS = ("schema", "prefix", "pgbouncer")
_AGAIN = 20 * MILLISECOND
"""When to look again for due documents that others were just changing."""
_LIBPQ = frozenset(
    (
        *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword", "sslcrl", "sslnegotiation", "channel_binding"),
        *("ssl_min_protocol_version", "gssencmode", "krbsrvname", "require_auth", "target_session_attrs", "passfile"),
        *("host", "hostaddr", "port", "user", "password", "dbname", "service", "application_name", "options"),
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "load_balance_hosts"),
    )
)


class PostgresStore(SqlStore[PostgresLink]):
    """A namespace in a PostgreSQL database."""

    options = _LIBPQ | frozenset(_OURS)
    recalls = frozenset((Kind.SESSION, Kind.JOB))

    def __init__(self, url: StoreUrl, *, namespace: str = "default", lease: timedelta = timedelta(seconds=15)) -> None:
        super().__init__(url, namespace=namespace, lease=lease)
        self.schema_name = _identifier(url, "schema")
        self.prefix = _identifier(url, "prefix") or "solocron_"
        self.road = road_of(url)
        self.pooled = ""
        """How a pooler has shown that the URL does not mention."""
        self.words = migrations.words("postgres", self.prefix, self.schema_name)
        self._sql = statements(self.prefix, self.schema_name)
        self._settings = SessionSettings(self._lease)
        self._conninfo = self._connection_options()
        self._sender = secrets.token_hex(8)
        self._tier = Capabilities(tier=Tier.A, why="not opened yet", notifies=self.listens)
        where = f"{self.schema_name or ''}.{self.prefix}.{namespace}"
        self.channel = "solocron_" + hashlib.blake2b(where.encode(), digest_size=8).hexdigest()
        self._listener = Listener(self._connect, self.channel, self._sender)

    @property
    def capabilities(self) -> Capabilities:
        return self._tier

    @property
    def listens(self) -> bool:
        """Return whether notifications reach this client."""
        return self.road is not Road.TRANSACTION

    # --- opening

    def _connect(self, *, read_only: bool = False) -> PostgresLink:
        try:
            return self._connect_by(self.road, read_only)
        except Pooled as found:
            self._share_sessions(str(found))
            return self._connect_by(self.road, read_only)

    def _alike(self) -> Hashable:
        # What the URL does not say, libpq takes from the environment.
        defaults = tuple((option.keyword, option.val) for option in Conninfo.get_defaults())
        return super()._alike(), defaults

    def _lent(self, link: PostgresLink) -> None:
        super()._lent(link)
        if link.road is Road.TRANSACTION and self.road is not Road.TRANSACTION:
            self._share_sessions(link.pooled)  # another store has found the pooler

    def _share_sessions(self, how: str) -> None:
        """Go on as with pgbouncer=1, which is safe behind a pooler of any kind."""
        self.road = Road.TRANSACTION
        self._tier = replace(self._tier, notifies=False)
        if not self.pooled:
            log.warning(
                "%s is reached through a pooler: %s. No setting of a session is relied on, and changes are seen by "
                "polling. Write pgbouncer=1 into the URL, or pgbouncer=session if the pooler is in session mode, or "
                "connect directly.",
                self.url,
                how,
                extra={"event": "pooler found", "store": self.url},
            )
        self.pooled = how

    def _connect_by(self, road: Road, read_only: bool) -> PostgresLink:
        # The server ends a statement after a fifth of the lease; a silent server is given up before a third is over.
        patience = max(0.5, self._lease / SECOND * 4 / 15)
        conninfo = revealed(self._conninfo)
        if road is Road.DIRECT:  # a pooler would refuse the options, or pass a setting on to the next client
            only = " -c default_transaction_read_only=on" if read_only else ""
            conninfo |= {"options": f"{self._options}{only}"}
        return PostgresLink(
            self._url,
            self._sql,
            self.count,
            conninfo=conninfo,
            patience=patience,
            road=road,
            pooled=self.pooled,
            settings=self._settings,
        )

    @property
    def _options(self) -> str:
        return f"{self._conninfo.get('options', '')} {self._settings.startup}".strip()

    def _connection_options(self) -> dict[str, Any]:
        theirs = {name: value for name, value in self._url.options.items() if name not in _OURS}
        secret = self._url.secret.reveal().partition("?")[0]
        try:
            info = conninfo_to_dict(secret) | theirs
        except Exception:  # noqa: BLE001 - libpq shows the whole URL in its message
            raise ConfigurationError(
                f"the URL of {self._url.masked} cannot be read by libpq; nothing was opened."
            ) from None
        fifth = self._settings.fifth
        if "," in str(info.get("host", "")):
            info.setdefault("target_session_attrs", "read-write")  # one of them is the primary: pass the others over
        info.setdefault("connect_timeout", max(2, int(self._lease / SECOND / 3)))
        info.setdefault("application_name", "solocron")
        info.setdefault("tcp_user_timeout", fifth)
        info.setdefault("keepalives_idle", max(1, fifth // 1000))
        info.setdefault("keepalives_interval", 1)
        info.setdefault("keepalives_count", 3)
        # Perhaps another password at each connection.
        return hidden(info) | ({} if self._url.password is None else {"password": self._url.password})

    def _prepare(self) -> None:
        with self.pool.link() as link:
            self._inspect(link)
            if not migrations.SchemaStatus(self._schema(link)).current:
                self._migrate(link)

    def _inspect(self, link: PostgresLink) -> None:
        version, replica, _, synchronous, fsync, pages, encoding, *_ = link.all("about", {})[0]
        if replica:
            raise StoreRefused(
                f"{self.url} is a read replica, which lags and cannot be written; nothing was written. "
                "Name the primary server."
            )
        if version < OLDEST:
            raise StoreRefused(
                f"{self.url} runs PostgreSQL {version // 10000}; at least {OLDEST // 10000} is needed. Nothing was "
                "written."
            )
        if encoding != "UTF8":
            raise StoreRefused(
                f"the database of {self.url} is encoded in {encoding}, which cannot hold every name; nothing was "
                "written. Create it with ENCODING 'UTF8'."
            )
        weak = [f"{name}={value}" for name, value in _durability(synchronous, fsync, pages).items()]
        self._tier = Capabilities(
            tier=Tier.B if weak else Tier.A,
            why=f"{', '.join(weak)}: the last commits may be lost in a crash" if weak else "primary, durable commits",
            notifies=self.listens,
        )

    def schema(self) -> int | None:
        with self.pool.link() as link:
            return self._schema(link)

    def _schema(self, link: PostgresLink) -> int | None:
        if not link.all("tables", {"meta": self.words["meta"]})[0][0]:
            return None
        return migrations.check_compatible(dict(link.all("schema_version", {})), self.url)

    def _migrate(self, link: PostgresLink) -> None:
        """Apply what is missing, in one transaction, while other clients wait at the same advisory lock."""
        key = int.from_bytes(hashlib.blake2b(self.words["meta"].encode(), digest_size=7).digest(), "big")
        try:
            link.execute("BEGIN")
            link.execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '60s'")
            link.execute(f"SELECT pg_advisory_xact_lock({key})")
            applied = self._schema(link)
            if not migrations.SchemaStatus(applied).current:
                if self.schema_name is not None:
                    link.execute(f'CREATE SCHEMA IF NOT EXISTS "{self.schema_name}"')
                for statement in migrations.steps("postgres", self.words, applied):
                    link.execute(statement)
            link.execute("COMMIT")
        except StoreRefused as error:
            raise StoreRefused(
                f"the schema of {self.url} is missing or old, and this user may not change it; nothing was written. "
                "Run `solocron migrate` as a user who may, then start again."
            ) from error

    def forked(self) -> None:
        super().forked()
        self._listener.forked()

    def close(self) -> None:
        self._listener.close()
        super().close()

    # --- time

    def now(self, link: PostgresLink) -> int:
        return self._observed(link.all("clock", {"shift": self._shift})[0][0])

    def _observed(self, now: int) -> int:
        """Keep the server's time with our own: together they give a lower bound of it later on."""
        self.cache.observe(now - self._shift)
        return now

    # --- documents

    def among(self, values: Sequence[str]) -> list[str]:
        return list(values)

    def select(self, link: PostgresLink, which: Which, session: str | None, *, change: bool) -> Selection:
        more = {"namespace": self._namespace, "shift": self._shift, "session": session}
        if isinstance(which, Due):
            return self._select_due(link, which, more, change)
        name, params = self.selecting(which)
        if not change:
            return Selection(arrange(which, link.all(name, params)), 0)
        rows = link.begin_with(f"{name}_locked", params | more)
        tail = next(row for row in rows if row[0] is None)
        found = [row[:4] for row in rows if row[0] is not None]
        return Selection(arrange(which, found), self._observed(tail[4]), alive=tail[6])

    def _select_due(self, link: PostgresLink, which: Due, more: Mapping[str, Any], change: bool) -> Selection:
        pools = sorted(which.pools)
        params = {
            **more,
            "pool": pools[0] if len(pools) == 1 else None,
            "pools": pools,
            "handlers": sorted(which.handlers),
            "exclude": sorted(which.exclude),
            "limit": which.limit,
        }
        if not change:
            rows = link.all("due_now", params)
            return Selection(arrange(which, rows), 0)
        rows = link.begin_with("due_jobs" if len(pools) == 1 else "due_jobs_of_pools", params)
        tail = next(row for row in rows if row[0] is None)
        found = sorted((row for row in rows if row[0] is not None), key=lambda row: (row[4], row[0]))
        now, following = self._observed(tail[4]), tail[5]
        if following is not None and following <= now and len(found) < which.limit:
            following = now + _AGAIN  # due, but others are just changing them
        return Selection(arrange(which, found), now, alive=tail[6], next_due=following)

    def who_answers(self, link: PostgresLink) -> str:
        return str(link.all("who_answers", {})[0][0])

    def commit(
        self, link: PostgresLink, drafts: Sequence[Draft], session: str | None, selection: Selection, gate: Gate | None
    ) -> Committed:
        batch = Batch.of(self._namespace, drafts[0].kind, drafts)
        recalled = selection.latest is not None
        if recalled and batch.kind is Kind.SESSION:
            outcome = self._renew(link, batch, drafts[0], selection)
        elif recalled and len(batch.let_go) < len(drafts):
            outcome = Committed(lost={one.name for one in drafts})  # not the ends of runs: ask the server first
        else:
            own = batch.kind is Kind.SESSION and any(one.name == session for one in drafts)
            outcome = self._write(link, batch, session, selection, gate, own=own)
        return outcome

    def abandon(self, link: PostgresLink) -> None:
        link.rollback()

    def _renew(self, link: PostgresLink, batch: Batch, one: Draft, selection: Selection) -> Committed:
        if batch.notifies or not batch.alone or not batch.redefined:
            return Committed(lost={one.name})  # not a plain renewal: ask the server first
        columns = dict(zip(COLUMNS["document_changed"], batch.redefined[0], strict=True))
        window = {"now": selection.now, "latest": selection.latest, "shift": self._shift}
        rows = link.returning("session_renewed", columns | window)
        if not rows:
            return Committed(lost={one.name})
        told, holds, body, identity = rows[0]
        gate = None if body is None else (gate_in(body), identity)
        return Committed(holds=holds, told=self._observed(told), gate=gate)

    def _write(
        self,
        link: PostgresLink,
        batch: Batch,
        session: str | None,
        selection: Selection,
        gate: Gate | None,
        *,
        own: bool = False,
    ) -> Committed:
        parts = [(name, rows) for name, rows in batch.writes() if rows]
        extras = [(name, rows) for name, rows in batch.follow_ups() if rows]
        recalled = selection.latest is not None
        if recalled:
            # After a restore a version may come a second time, but not with a hold of ours: each must have been there.
            parts.append(("hold_removed", batch.let_go))
            extras = [(name, rows) for name, rows in extras if name != "hold_removed"]
        params: dict[str, Any] = {name: as_json(name, rows) for name, rows in (*parts, *extras)}
        params |= {
            "namespace": self._namespace,
            "expected": sum(len(rows) for _, rows in parts),
            "session": session,
            "beats": 0 if gate is None else gate.beats,
            "words": [] if gate is None else list(gate.words),
            "pauses": "" if gate is None or not gate.pauses else f"{gate.pauses} ",
            "channel": self.channel,
            "sender": self._sender,
            "shift": self._shift,
            "now": selection.now,
            "latest": selection.latest,
        }
        names = (tuple(name for name, _ in parts), tuple(name for name, _ in extras))
        answers = {
            "session": session is not None,
            "own": own,
            "gate": gate is not None and session is not None,
            "notify": batch.notifies,
            "recalled": recalled,
        }
        sql = writing(self.prefix, self.schema_name, *names, **answers)
        try:
            if recalled:
                told, appended = link.write_alone("write", sql, params)[0][:2]
                return Committed(told=self._observed(told), short=appended < len(batch.appended))
            appended = link.commit_with("write", sql, params)[0][0]
        except SessionGone:
            link.rollback()
            return Committed(alive=False)
        except GateShut:
            link.rollback()
            return Committed(shut=True)
        return Committed(short=appended < len(batch.appended))

    # --- the user's own transactions

    def mailbox(self) -> AbstractContextManager[Mailbox]:
        from solocron.stores.sql.postgres.mailbox import open_mailbox

        return open_mailbox(self)

    # --- waking up

    def signal(self) -> None:
        self.open()
        self.call(lambda link: link.returning("notify", {"channel": self.channel, "sender": ""}))

    def wait(self, timeout: float) -> bool:
        self.open()
        return self._listener.wait(timeout, listen=self.listens)

    def checks(self) -> Sequence[Check]:
        from solocron.stores.sql.postgres.checks import checks

        return checks(self)


def _durability(synchronous: str, fsync: str, pages: str) -> dict[str, str]:
    """Return the settings that are too weak to keep what was committed."""
    found = {"synchronous_commit": synchronous, "fsync": fsync, "full_page_writes": pages}
    return {name: value for name, value in found.items() if value == "off"}


def _identifier(url: StoreUrl, option: str) -> str | None:
    value = url.options.get(option)
    if value is None:
        return None
    if not IDENTIFIER.fullmatch(value):
        raise ConfigurationError(
            f"{url.masked}: {option}= must be a small letter or _, then up to 47 of a-z, 0-9 and _; nothing was opened."
        )
    return value
