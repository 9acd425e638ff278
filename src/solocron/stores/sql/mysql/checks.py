"""The lines of `doctor` about a MySQL or MariaDB store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

if TYPE_CHECKING:
    from solocron.stores.sql.mysql.link import MySQLLink
    from solocron.stores.sql.mysql.store import MySQLStore

__all__ = ["checks"]


def checks(store: MySQLStore) -> Sequence[Check]:
    """Return every line; a server that cannot be asked is a FAIL that says why."""
    try:
        with store.links.link() as link:
            return _look(store, link)
    except StoreError as error:
        return [Check("store", "FAIL", str(error), "check the URL, the server and the rights")]


def _look(store: MySQLStore, link: MySQLLink) -> list[Check]:
    from solocron.stores.sql.mysql.store import settings_of

    found = settings_of(link)
    before = wall()
    clock = link.all("clock", {"shift": 0})[0][0]
    middle = (before + wall()) // 2
    cipher = link.all("encrypted", {})
    return [
        _version(link),
        _role(found),
        _galera(found),
        _flush(found),
        _binlog(found),
        _doublewrite(found),
        *_session(found),
        check_connections(int(link.all("connections", {})[0][1]), int(found["max_connections"])),
        check_encryption(
            store._url.hosts, bool(cipher and cipher[0][1]), verified="ssl_ca" in store._url.options, verify="ssl_ca="
        ),
        check_rights(_may_create(link), "this database"),
        check_schema(migrations.SchemaStatus(store._schema(link))),
        _collation(store, link),
        check_clock(middle - clock),
        Check("wake-up", "OK", "by polling once a second: the server cannot notify"),
    ]


def _version(link: MySQLLink) -> Check:
    from solocron.stores.sql.mysql.store import OLDEST, version_of

    flavour, version = version_of(link)
    detail = f"{flavour} {'.'.join(map(str, version))}"
    if version < OLDEST[flavour]:
        return Check("version", "FAIL", detail, f"upgrade to {'.'.join(map(str, OLDEST[flavour]))} or later")
    return Check("version", "OK", detail)


def _role(found: Mapping[str, str]) -> Check:
    from solocron.stores.sql.mysql.store import is_read_only

    if is_read_only(found):
        return Check(
            "role", "FAIL", "read-only, or a replica: it lags, and cannot be written", "name the primary server"
        )
    return Check("role", "OK", "primary")


def _galera(found: Mapping[str, str]) -> Check:
    if found.get("wsrep_on") == "ON":
        return Check(
            "Galera",
            "FAIL",
            "on: lost updates and stale reads were seen in healthy clusters (tier C)",
            "use a single writer without Galera",
        )
    return Check("Galera", "OK", "off")


def _flush(found: Mapping[str, str]) -> Check:
    value = found.get("innodb_flush_log_at_trx_commit", "1")
    if value != "1":
        return Check(
            "innodb_flush_log_at_trx_commit",
            "FAIL",
            f"{value}: a crash forgets the last commits (tier B)",
            "innodb_flush_log_at_trx_commit = 1",
        )
    return Check("innodb_flush_log_at_trx_commit", "OK", value)


def _binlog(found: Mapping[str, str]) -> Check:
    if found.get("log_bin") == "ON" and found.get("sync_binlog", "1") != "1":
        return Check(
            "sync_binlog", "WARN", f"{found['sync_binlog']}: a failover may forget the last commits", "sync_binlog = 1"
        )
    return Check("sync_binlog", "OK", found.get("sync_binlog", "no binary log"))


def _doublewrite(found: Mapping[str, str]) -> Check:
    value = found.get("innodb_doublewrite", "ON")
    if value in ("OFF", "0"):
        return Check(
            "innodb_doublewrite", "WARN", "off: a crash in the middle of a page may damage it", "innodb_doublewrite = 1"
        )
    return Check("innodb_doublewrite", "OK", value)


def _session(found: Mapping[str, str]) -> list[Check]:
    """Check the settings of our own sessions: a proxy in between may lose them."""
    isolation = found.get("transaction_isolation") or found.get("tx_isolation", "")
    lines = []
    for name, value, right in (
        ("isolation", isolation, isolation == "READ-COMMITTED"),
        ("time zone", found.get("time_zone", ""), found.get("time_zone") in ("+00:00", "UTC")),
        ("sql mode", found.get("sql_mode", ""), "STRICT_ALL_TABLES" in found.get("sql_mode", "")),
        (
            "character set",
            found.get("character_set_connection", ""),
            found.get("character_set_connection") == "utf8mb4",
        ),
    ):
        if right:
            lines.append(Check(name, "OK", f"{value} in our sessions"))
        else:
            detail = f"{value} although our sessions set it"
            lines.append(Check(name, "FAIL", detail, "connect without the proxy that shares sessions"))
    return lines


def _may_create(link: MySQLLink) -> bool:
    grants = " ".join(str(row[0]) for row in link.all("grants", {})).upper()
    return "ALL PRIVILEGES" in grants or " CREATE" in grants


def _collation(store: MySQLStore, link: MySQLLink) -> Check:
    tables = {name: f"{store.prefix}{name}" for name in ("jobs", "documents", "runs")}
    found = {str(collation) for _, collation in link.all("collations", tables)}
    wrong = sorted(name for name in found if not name.endswith("_bin"))
    if wrong:
        return Check(
            "collation",
            "FAIL",
            f"{', '.join(wrong)}: names that differ only in case or accents would be one",
            "ALTER TABLE ... CONVERT TO CHARACTER SET utf8mb4 with the collation that `solocron migrate --sql` shows",
        )
    return Check("collation", "OK", ", ".join(sorted(found)) or "no tables yet")
