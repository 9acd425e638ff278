"""What a Redis, as it is set up, can be trusted with: the facts that it tells, and what `doctor` says of them.

At best a Redis is tier B: one primary, every write in the append-only file, nothing evicted. Whatever of that is
missing leaves tier C, and the line says what can be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from solocron.errors import StoreRefused
from solocron.stores.contract import Capabilities, Check, Tier
from solocron.stores.redis.address import Address

__all__ = ["OLDEST", "Facts", "ask", "capabilities", "checks"]

OLDEST = (6, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a server tells of itself; None where it does not tell us."""

    product: str
    version: tuple[int, ...]
    primary: bool
    cluster: bool
    replicas: int
    append_only: bool | None
    sync: str | None
    policy: str | None
    maxmemory: int
    refused: str = ""
    """The first command that this user may not use."""
    listens: bool = True
    hidden: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.product} {'.'.join(map(str, self.version))}"


def ask(command: Callable[..., Any], refused: str, listens: bool) -> Facts:
    """Ask a server; what its user may not see is taken from elsewhere or left open."""
    hidden: list[str] = []
    info = _info(command, hidden)
    product = "Valkey" if "valkey_version" in info else "Redis"
    version = info.get("valkey_version") or info.get("redis_version") or "0"
    append_only = info.get("aof_enabled")
    return Facts(
        product=product,
        version=tuple(int(part) for part in version.split(".") if part.isdigit()),
        primary=info.get("role", "master") == "master",
        cluster=info.get("cluster_enabled") == "1",
        replicas=int(info.get("connected_slaves", 0)),
        append_only=None if append_only is None else append_only == "1",
        sync=_setting(command, "appendfsync", hidden),
        policy=info.get("maxmemory_policy") or _setting(command, "maxmemory-policy", hidden),
        maxmemory=int(info.get("maxmemory", 0)),
        refused=refused,
        listens=listens,
        hidden=hidden,
    )


def _info(command: Callable[..., Any], hidden: list[str]) -> dict[str, str]:
    try:
        text = command("INFO").decode()
    except StoreRefused:
        hidden.append("INFO")
        return {}
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def _setting(command: Callable[..., Any], name: str, hidden: list[str]) -> str | None:
    try:
        pair = command("CONFIG", "GET", name)
    except StoreRefused:
        hidden.append(f"CONFIG GET {name}")
        return None
    return pair[1].decode() if pair else None


def capabilities(facts: Facts, address: Address) -> Capabilities:
    """The tier that is left, and why."""
    losses = [detail for level, detail in _losses(facts, address) if level == "FAIL"]
    if losses:
        return Capabilities(tier=Tier.C, why="; ".join(losses), notifies=facts.listens)
    kept = {"always": "every write is synced before it is acknowledged"}.get(
        facts.sync or "", "a power cut may cost the writes of the last second"
    )
    return Capabilities(
        tier=Tier.B,
        why=f"one primary with an append-only file, nothing evicted; {kept}",
        notifies=facts.listens,
    )


def _losses(facts: Facts, address: Address) -> list[tuple[str, str]]:
    """Each thing that can be lost, as level and sentence; in the order of the lines of `checks`."""
    return [line for line in (_topology(facts, address), _durability(facts), _eviction(facts)) if line[0] != "OK"]


def _topology(facts: Facts, address: Address) -> tuple[str, str]:
    if address.sentinel is not None:
        return "FAIL", "Sentinel: a failover loses acknowledged writes, so a slot may run twice and a fence go back"
    if address.cluster or facts.cluster:
        return (
            "FAIL",
            "Redis Cluster: a failover loses acknowledged writes, so a slot may run twice and a fence go back",
        )
    return "OK", "one primary"


def _durability(facts: Facts) -> tuple[str, str]:
    if facts.append_only is None:
        return "FAIL", "whether writes are kept cannot be seen (INFO is not allowed), so it is not counted on"
    if not facts.append_only:
        return (
            "FAIL",
            "no append-only file: a crash or restart loses every write since the last snapshot, if there is one",
        )
    if facts.sync == "no":
        return (
            "FAIL",
            "the append-only file is synced when the system likes (appendfsync no): a power cut may cost half a minute",
        )
    if facts.sync is None:
        return "WARN", "append-only file on; how often it is synced cannot be seen (CONFIG GET is not allowed)"
    return "OK", f"append-only file on, appendfsync {facts.sync}"


def _eviction(facts: Facts) -> tuple[str, str]:
    if facts.policy is None:
        return "WARN", "whether documents may be evicted cannot be seen (neither INFO nor CONFIG GET is allowed)"
    if facts.policy != "noeviction":
        return "FAIL", f"maxmemory-policy {facts.policy}: a full server silently drops jobs and their history"
    return "OK", "maxmemory-policy noeviction"


def checks(facts: Facts, address: Address, *, round_trip: float) -> Sequence[Check]:
    """The lines of `doctor`."""
    found = capabilities(facts, address)
    tier = f"{facts.name}, tier {found.tier}, round trip {round_trip * 1000:.1f} ms"
    lines = [Check("store", "OK" if found.tier is Tier.B else "WARN", tier)]
    old = facts.version < OLDEST
    lines.append(
        Check(
            "version",
            "FAIL" if old else "OK",
            f"{facts.name}; {'.'.join(map(str, OLDEST))} or later is needed",
            "use a newer Redis or Valkey" if old else None,
        )
    )
    lines.append(
        Check(
            "role",
            "OK" if facts.primary else "FAIL",
            "takes writes" if facts.primary else "is a replica and takes no writes",
            None if facts.primary else "name the primary in the URL",
        )
    )
    level, detail = _topology(facts, address)
    lines.append(Check("topology", level, detail, "use one primary without failover" if level != "OK" else None))
    level, detail = _durability(facts)
    lines.append(
        Check("durability", level, detail, "set appendonly yes and appendfsync everysec" if level != "OK" else None)
    )
    level, detail = _eviction(facts)
    lines.append(Check("eviction", level, detail, "set maxmemory-policy noeviction" if level != "OK" else None))
    lines.append(_rights(facts))
    lines.append(_transport(address))
    return lines


def _rights(facts: Facts) -> Check:
    if facts.refused:
        return Check(
            "rights", "FAIL", f"a command is not allowed: {facts.refused}", "grant what docs/how-to/redis.md lists"
        )
    if not facts.listens:
        return Check(
            "rights",
            "WARN",
            "may not listen on the namespace's channel, so changes are seen by polling alone",
            "grant +subscribe +publish and the channel, as docs/how-to/redis.md lists",
        )
    return Check("rights", "OK", "sufficient")


def _transport(address: Address) -> Check:
    if address.tls:
        return Check("transport", "OK", "TLS")
    if address.loopback:
        return Check("transport", "OK", "plain, within this machine")
    return Check("transport", "WARN", "documents and password cross the network in plain text", "use rediss://")
