"""Lines of `doctor` that every SQL server has: schema, clock, the road to it."""

from __future__ import annotations

import time

from solocron.clock import SECOND
from solocron.stores.contract import Check
from solocron.stores.sql.migrations import SchemaStatus

__all__ = ["check_clock", "check_connections", "check_encryption", "check_rights", "check_schema", "loopback"]

_SKEW = SECOND
_NEARLY_ALL = 0.8


def check_schema(found: SchemaStatus) -> Check:
    """Check that the tables are what this code expects."""
    detail = f"{'none' if found.applied is None else found.applied}/{found.latest}"
    if not found.current:
        return Check("schema", "FAIL", f"{detail}: missing or old", "solocron migrate")
    if found.applied != found.latest:
        return Check("schema", "WARN", f"{detail}: newer than this code", "pip install -U solocron")
    return Check("schema", "OK", detail)


def check_clock(skew: int) -> Check:
    """Check how far this machine's wall clock is from the store's, which alone decides."""
    side = "ahead of" if skew > 0 else "behind"
    detail = f"this machine's wall clock is {abs(skew) / SECOND:.3f} s {side} the store's"
    if abs(skew) > _SKEW:
        return Check("clock", "WARN", f"{detail}; the store's clock decides", "set the machine's clock by NTP")
    return Check("clock", "OK", detail)


def check_rights(may_change_tables: bool, where: str) -> Check:
    """Nodes need no right to change tables, as long as another user migrates."""
    if may_change_tables:
        return Check("rights", "OK", f"may change tables in {where}: migrations are applied at start")
    return Check(
        "rights",
        "WARN",
        f"may not change tables in {where}: a new version will not migrate by itself",
        "run `solocron migrate` as a user who may, before each upgrade",
    )


def check_connections(used: int, limit: int) -> Check:
    """A server that has no connection left turns new nodes away, and old ones after an outage."""
    detail = f"{used} of {limit} in use"
    if used >= limit * _NEARLY_ALL:
        return Check("connections", "WARN", detail, "raise max_connections, or see who has so many; a node needs few")
    return Check("connections", "OK", detail)


def check_encryption(hosts: str, encrypted: bool, *, verified: bool, verify: str) -> Check:
    """Passwords and payloads travel on this road. `verify` is the option that has the certificate verified."""
    if encrypted and verified:
        return Check("encryption", "OK", "TLS, with a verified certificate")
    if encrypted and loopback(hosts):
        return Check("encryption", "OK", "TLS, and the server is on this machine")
    if encrypted:
        told = "TLS, but the certificate is not verified: another machine on the way could pose as the server"
        return Check("encryption", "WARN", told, f"add {verify} to the URL")
    if loopback(hosts):
        return Check("encryption", "OK", "none, and the server is on this machine")
    return Check("encryption", "WARN", "none: passwords and payloads can be read on the way", "use TLS, see the how-to")


def loopback(hosts: str) -> bool:
    """Return whether every host of a URL is this machine (or a socket file)."""
    names = [host.rsplit("@", 1)[-1] for host in hosts.split(",")]
    return all(_is_here(name) for name in names)


def _is_here(host: str) -> bool:
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return name in ("", "localhost", "::1") or name.startswith(("127.", "/", "%2F"))


def wall() -> int:
    """Return this machine's wall time, for people."""
    return time.time_ns() // 1000
