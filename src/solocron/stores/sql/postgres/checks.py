"""The lines of `doctor` about a PostgreSQL store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from solocron.errors import StoreError
from solocron.stores.contract import Check
from solocron.stores.sql import migrations
from solocron.stores.sql.checks import (
    check_clock,
    check_connections,
    check_encryption,
    check_rights,
    check_schema,
    wall,
)
from solocron.stores.sql.postgres.session import Road

if TYPE_CHECKING:
    from solocron.stores.sql.postgres.link import PostgresLink
    from solocron.stores.sql.postgres.store import PostgresStore

__all__ = ["checks"]

_WEAK = {
    "synchronous_commit": "a commit is acknowledged before it is on disk: a crash forgets claims (tier B)",
    "fsync": "nothing is forced to disk: a crash may damage everything (tier B)",
    "full_page_writes": "a crash in the middle of a page may damage it (tier B)",
}


def checks(store: PostgresStore) -> Sequence[Check]:
    """Return every line; a server that cannot be asked is a FAIL that says why."""
    try:
        with store.links.link() as link:
            found = _look(store, link)
    except StoreError as error:
        return [Check("store", "FAIL", str(error), "check the URL, the server and the rights")]
    return [*found, _listening(store)]


def _look(store: PostgresStore, link: PostgresLink) -> list[Check]:
    before = wall()
    row = link.all("about", {})[0]
    version, replica, isolation, synchronous, fsync, pages, encoding, zone, clock, may_create = row
    middle = (before + wall()) // 2
    settings = {"synchronous_commit": synchronous, "fsync": fsync, "full_page_writes": pages}
    return [
        _version(version),
        _role(replica),
        _standbys(*link.all("standbys", {})[0]),
        _encoding(encoding),
        _isolation(isolation),
        *(_durable(name, value) for name, value in settings.items()),
        _session(store),
        _zone(zone),
        check_connections(*link.all("connections", {})[0]),
        check_encryption(
            store._url.hosts, link.db.pgconn.ssl_in_use, verified=link.verified, verify="sslmode=verify-full"
        ),
        check_rights(may_create, f"schema {store.schema_name or 'public'}"),
        check_schema(migrations.SchemaStatus(store._schema(link))),
        check_clock(middle - clock),
    ]


def _version(number: int) -> Check:
    from solocron.stores.sql.postgres.store import OLDEST

    detail = f"PostgreSQL {number // 10000}.{number % 10000}"
    if number < OLDEST:
        return Check("version", "FAIL", detail, f"upgrade to {OLDEST // 10000} or later")
    return Check("version", "OK", detail)


def _role(replica: bool) -> Check:
    if replica:
        return Check("role", "FAIL", "a read replica: it lags, and cannot be written", "name the primary server")
    return Check("role", "OK", "primary")


def _standbys(connected: int, synchronous: str) -> Check:
    """A failover to a standby that lags loses commits; nodes notice it and put back what they remember."""
    if connected == 0:
        return Check("standbys", "OK", "none is connected")
    if not synchronous:
        return Check(
            "standbys",
            "WARN",
            f"{connected}, and no commit waits for any of them: a failover may lose the last ones, so this is tier A "
            "only while the primary lives",
            "set synchronous_standby_names; nodes heal what they remember, see docs/explanation/going-back.md",
        )
    return Check("standbys", "OK", f"{connected}; commits wait for {synchronous}")


def _encoding(encoding: str) -> Check:
    if encoding != "UTF8":
        return Check(
            "encoding", "FAIL", f"{encoding} cannot hold every name", "create the database with ENCODING 'UTF8'"
        )
    return Check("encoding", "OK", encoding)


def _isolation(level: str) -> Check:
    if level != "read committed":
        return Check(
            "isolation",
            "WARN",
            f"{level} for single statements: renewals may fail and be repeated",
            "ALTER ROLE ... SET default_transaction_isolation = 'read committed'",
        )
    return Check("isolation", "OK", level)


def _durable(name: str, value: str) -> Check:
    if value == "off":
        return Check(name, "FAIL", f"off: {_WEAK[name]}", f"{name} = on")
    if value == "local":
        return Check(name, "WARN", "local: a failover may forget the last commits", f"{name} = on")
    return Check(name, "OK", value)


def _session(store: PostgresStore) -> Check:
    """Each connection was asked when it was opened whether its timeouts are ours."""
    if store.pooled:
        told = f"a pooler that the URL does not mention: {store.pooled}; settings go with each transaction instead"
        return Check("session", "WARN", told, "write pgbouncer=1 or pgbouncer=session, or connect directly")
    if store.road is Road.TRANSACTION:
        return Check("session", "OK", "shared through a pooler; our timeouts go with each transaction")
    return Check("session", "OK", "our own, with our timeouts")


def _zone(zone: str) -> Check:
    # Times are whole microseconds since 1970 everywhere, so that no zone can be wrong; shown for people.
    return Check("time zone", "OK", f"{zone}; instants are stored as numbers")


def _listening(store: PostgresStore) -> Check:
    if not store.listens:
        told = "a pooler shares sessions: no LISTEN, changes are seen at the next poll"
        return Check("wake-up", "WARN", told, "connect directly, or pgbouncer=session if it is in session mode")
    try:
        with store.links.link() as link:
            link.execute(f'LISTEN "{store.channel}"')
            link.execute("UNLISTEN *")
    except StoreError as error:
        return Check("wake-up", "WARN", f"cannot LISTEN ({error})", "look at the server's log")
    return Check("wake-up", "OK", "can LISTEN")
