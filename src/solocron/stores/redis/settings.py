"""The tier of a Redis as it is set up: facts that the server reports, and what `doctor` says of them.

At best a Redis is tier B: one primary, every write in the append-only file, nothing evicted. Whatever of that is
missing leaves tier C, and its line says what can be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from solocron.errors import StoreRefused
from solocron.stores.contract import Capabilities, Check, Tier
from solocron.stores.redis.address import Address

__all__ = ["OLDEST", "Facts", "ask", "capabilities", "checks"]

OLDEST = (6, 2)
_NEARLY_FULL = 0.9
_NEARLY_ALL = 0.8
_HOW_TO = "docs/how-to/redis.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Settings that a server reports; None where it does not."""

    product: str
    version: tuple[int, ...]
    primary: bool
    cluster: bool
    append_only: bool | None
    sync: str | None
    policy: str | None
    used: int = 0
    limit: int = 0
    """Bytes of memory; without a limit it is 0."""
    clients: int = 0
    most_clients: int = 0
    """Connections; 0 where the server does not tell how many it takes."""
    refused: str | None = ""
    """The first command that is needed and that this user may not use; None where that was not tried."""
    listens: bool = True

    @property
    def name(self) -> str:
        return f"{self.product} {'.'.join(map(str, self.version))}"


def ask(command: Callable[..., Any], *, refused: str | None, listens: bool) -> Facts:
    """Ask a server; what its user may not see is left open."""
    info = _info(command)
    product = "Valkey" if "valkey_version" in info else "Redis"
    version = info.get("valkey_version") or info.get("redis_version") or ".".join(map(str, OLDEST))
    append_only = info.get("aof_enabled")
    return Facts(
        product=product,
        version=tuple(int(part) for part in version.split(".") if part.isdigit()),
        primary=info.get("role", "master") == "master",
        cluster=info.get("cluster_enabled") == "1",
        append_only=None if append_only is None else append_only == "1",
        sync=_setting(command, "appendfsync"),
        policy=info.get("maxmemory_policy") or _setting(command, "maxmemory-policy"),
        used=int(info.get("used_memory", 0)),
        limit=int(info.get("maxmemory", 0)),
        clients=int(info.get("connected_clients", 0)),
        most_clients=int(info.get("maxclients") or _setting(command, "maxclients") or 0),
        refused=refused,
        listens=listens,
    )


def _info(command: Callable[..., Any]) -> dict[str, str]:
    try:
        text = command("INFO").decode()
    except StoreRefused:
        return {}
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def _setting(command: Callable[..., Any], name: str) -> str | None:
    try:
        pair = command("CONFIG", "GET", name)
    except StoreRefused:
        return None
    return pair[1].decode() if pair else None


def capabilities(facts: Facts, address: Address) -> Capabilities:
    """Return the tier that is left, and why."""
    lines = (_topology(facts, address), _durability(facts), _eviction(facts))
    losses = [line.detail for line, costs in lines if costs]
    if losses:
        return Capabilities(tier=Tier.C, why="; ".join(losses), notifies=facts.listens)
    kept = "every write is synced before it is acknowledged"
    if facts.sync != "always":
        kept = "a power cut may cost the writes of the last second"
    why = f"one primary with an append-only file, nothing evicted; {kept}"
    return Capabilities(tier=Tier.B, why=why, notifies=facts.listens)


def checks(facts: Facts, address: Address) -> Sequence[Check]:
    """Return the lines of `doctor`."""
    return (
        _server(facts),
        _role(facts),
        _topology(facts, address)[0],
        _durability(facts)[0],
        _eviction(facts)[0],
        _memory(facts),
        _clients(facts),
        _rights(facts),
        _encryption(address),
    )


def _server(facts: Facts) -> Check:
    if facts.version < OLDEST:
        return Check("server", "FAIL", f"{facts.name} is too old", "use Redis 6.2 or later, or Valkey")
    return Check("server", "OK", facts.name)


def _role(facts: Facts) -> Check:
    if not facts.primary:
        return Check("role", "FAIL", "is a replica and takes no writes", "name the primary in the URL")
    return Check("role", "OK", "primary")


# Each with whether it costs the tier.


def _topology(facts: Facts, address: Address) -> tuple[Check, bool]:
    if address.sentinel is None and not address.cluster and not facts.cluster:
        return Check("topology", "OK", "one primary"), False
    what = "Redis Cluster" if address.sentinel is None else "Sentinel"
    detail = f"{what}: a failover may lose acknowledged writes, and a slot may then run twice"
    return Check("topology", "WARN", detail, "where that must not be, use one primary without failover"), True


def _durability(facts: Facts) -> tuple[Check, bool]:
    remedy = "set appendonly yes and appendfsync everysec"
    if facts.append_only is None:
        detail = "whether writes survive a restart cannot be seen (INFO is not allowed), so it is not relied on"
        return Check("durability", "FAIL", detail, "allow INFO to this user"), True
    if not facts.append_only:
        detail = "no append-only file: a crash loses every write since the last snapshot, and all where there is none"
        return Check("durability", "FAIL", detail, remedy), True
    if facts.sync == "no":
        detail = "appendfsync no: a power cut may cost the writes of half a minute"
        return Check("durability", "FAIL", detail, remedy), True
    if facts.sync is None:
        detail = "append-only file on; how often it is synced cannot be seen (CONFIG GET is not allowed)"
        return Check("durability", "WARN", detail, f"{remedy}, or allow CONFIG GET to this user"), False
    return Check("durability", "OK", f"append-only file on, appendfsync {facts.sync}"), False


def _eviction(facts: Facts) -> tuple[Check, bool]:
    remedy = "set maxmemory-policy noeviction"
    if facts.policy is None:
        detail = "whether documents may be evicted cannot be seen (INFO is not allowed), so it is not relied on"
        return Check("eviction", "FAIL", detail, "allow INFO to this user"), True
    if facts.policy != "noeviction":
        detail = f"maxmemory-policy {facts.policy}: a full server silently drops jobs and their history"
        return Check("eviction", "FAIL", detail, remedy), True
    return Check("eviction", "OK", "maxmemory-policy noeviction"), False


def _memory(facts: Facts) -> Check:
    used = f"{facts.used / 1e6:.0f} MB used"
    if not facts.limit:
        return Check("memory", "OK", f"{used}, without a limit")
    detail = f"{used} of {facts.limit / 1e6:.0f} MB"
    remedy = "raise maxmemory, or keep less history"
    if facts.used >= facts.limit:
        return Check("memory", "FAIL", f"{detail}: it is full, and every write is refused", remedy)
    if facts.used >= facts.limit * _NEARLY_FULL:
        return Check("memory", "WARN", f"{detail}: it is nearly full", remedy)
    return Check("memory", "OK", detail)


def _clients(facts: Facts) -> Check:
    if not facts.most_clients:
        return Check("connections", "OK", "how many there may be cannot be seen (INFO is not allowed)")
    detail = f"{facts.clients} of {facts.most_clients} in use"
    if facts.clients >= facts.most_clients * _NEARLY_ALL:
        return Check("connections", "WARN", detail, "raise maxclients, or see who has so many: CLIENT LIST")
    return Check("connections", "OK", detail)


def _rights(facts: Facts) -> Check:
    if facts.refused is None:
        return Check("rights", "OK", "may read; to try the others is to write, which `solocron doctor --repair` does")
    if facts.refused:
        return Check("rights", "FAIL", f"a command is refused: {facts.refused}", f"grant what {_HOW_TO} lists")
    if not facts.listens:
        detail = "may not use the namespace's channel, so changes are only seen by polling"
        return Check("rights", "WARN", detail, f"grant the channel as {_HOW_TO} shows")
    return Check("rights", "OK", "sufficient")


def _encryption(address: Address) -> Check:
    if address.tls and not address.verified:
        told = "TLS, but the certificate is not verified: another machine on the way could pose as the server"
        return Check("encryption", "WARN", told, "name the authority by ssl_ca_certs= instead of insecure_skip_verify")
    if address.tls:
        return Check("encryption", "OK", "TLS, with a verified certificate")
    if address.loopback:
        return Check("encryption", "OK", "none, and the server is on this machine")
    return Check("encryption", "WARN", "none: passwords and payloads can be read on the way", "use rediss://")
