"""What `doctor` and the tier are made of on etcd: version, space, compaction, alarms, members."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from solocron.clock import MILLISECOND
from solocron.errors import StoreError, StoreRefused
from solocron.stores.contract import Capabilities, Check, Tier
from solocron.stores.swap.address import check_encryption
from solocron.stores.swap.etcd.address import EtcdAddress
from solocron.stores.swap.etcd.link import EtcdLink
from solocron.stores.swap.server_time import ServerTime

__all__ = ["EtcdFacts", "ask_facts", "capabilities_of", "checks_of", "refuse"]

_OLDEST = (3, 4)
_FAULTY = ((3, 5, 0), (3, 5, 2))
"""Releases that can lose or corrupt data when they crash."""
_HASTY_ALONE = (((3, 4, 0), (3, 4, 20)), ((3, 5, 0), (3, 5, 4)))
"""Releases of which a single member may reply before its log has the commit (etcd issue 14370)."""
_LARGE = 1_500_000_000
"""Bytes: three quarters of the default quota, at which the whole cluster stops."""
_SLACK = 200_000_000
"""Bytes of old revisions that only compaction frees."""


@dataclass(frozen=True, slots=True)
class EtcdFacts:
    """What a member tells of itself; None where the user may not ask."""

    version: str
    size: int
    used: int
    leader: bool
    alarms: tuple[str, ...] | None
    members: int | None

    @property
    def release(self) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall(r"\d+", self.version)[:3])


def ask_facts(link: EtcdLink) -> EtcdFacts:
    """Ask the member that is connected."""
    status = link.read("/v3/maintenance/status", {})
    alarms = _if_allowed(link, "/v3/maintenance/alarm", {"action": "GET"})
    members = _if_allowed(link, "/v3/cluster/member/list", {})
    return EtcdFacts(
        version=str(status.get("version", "")),
        size=int(status.get("dbSize", 0)),
        used=int(status.get("dbSizeInUse", 0)),
        leader=int(status.get("leader", 0)) != 0,
        alarms=None if alarms is None else tuple(str(one.get("alarm", "")) for one in alarms.get("alarms", ())),
        members=None if members is None else len(members.get("members", ())),
    )


def _if_allowed(link: EtcdLink, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        return link.read(path, body)
    except StoreRefused:
        return None
    except StoreError:
        return None


def refuse(url: str, facts: EtcdFacts) -> None:
    """Raise for a server on which nothing can work."""
    if facts.release < _OLDEST:
        raise StoreRefused(
            f"{url} is etcd {facts.version}, and 3.4 is the oldest that works; nothing was written. Upgrade it."
        )


def capabilities_of(facts: EtcdFacts, clock: ServerTime) -> Capabilities:
    """Return the tier, and how well the time is known: etcd tells whole seconds."""
    if _FAULTY[0] <= facts.release <= _FAULTY[1]:
        why = f"etcd {facts.version} can lose data when it crashes; 3.5.3 has the fix"
        return Capabilities(tier=Tier.C, why=why, notifies=True, clock_within=clock.width)
    if facts.members == 1 and any(first <= facts.release <= last for first, last in _HASTY_ALONE):
        why = (
            f"a single member of etcd {facts.version} may reply before its log has the commit, and lose it in a crash; "
            "3.4.21 and 3.5.5 have the fix"
        )
        return Capabilities(tier=Tier.C, why=why, notifies=True, clock_within=clock.width)
    why = "etcd replies after a majority has synced the commit to disk, and its transactions are strictly serializable"
    return Capabilities(tier=Tier.A, why=why, notifies=True, clock_within=clock.width)


def checks_of(facts: EtcdFacts, address: EtcdAddress, clock: ServerTime) -> Iterator[Check]:
    """Yield the lines of `doctor`."""
    found = capabilities_of(facts, clock)
    faulty = found.tier is not Tier.A
    yield Check(
        "server", "FAIL" if faulty else "OK", f"etcd {facts.version}: {found.why}", "upgrade" if faulty else None
    )
    if not facts.leader:
        yield Check("leader", "FAIL", "the cluster has no leader: it takes no writes", "bring a majority of members up")
    if facts.alarms:
        remedy = "etcdctl compact, etcdctl defrag, etcdctl alarm disarm"
        yield Check("alarms", "FAIL", f"raised: {', '.join(facts.alarms)}; the cluster takes no writes", remedy)
    elif facts.alarms is None:
        yield Check("alarms", "OK", "cannot be seen by this user")
    yield _space(facts)
    if facts.members is not None:
        alone = facts.members < 3
        detail = (
            f"{facts.members} of the cluster" if not alone else f"{facts.members}: one that dies takes the store away"
        )
        yield Check("members", "WARN" if alone else "OK", detail, "run three members" if alone else None)
    yield from check_encryption(address, "etcds")
    told = f"known to {clock.width / MILLISECOND:.0f} ms; etcd tells whole seconds, and a node asks when they turn"
    yield Check("time", "OK", told)


def _space(facts: EtcdFacts) -> Check:
    size = f"{facts.size / 1e6:.0f} MB, {facts.used / 1e6:.0f} MB of it in use"
    if facts.size >= _LARGE:
        remedy = "set --auto-compaction-retention=1h, compact and defragment; at its quota the whole cluster stops"
        return Check("space", "FAIL", f"{size}: near the default quota of 2 GB", remedy)
    if facts.size - facts.used > _SLACK:
        remedy = "etcdctl defrag on one member after the other"
        return Check("space", "WARN", f"{size}: the rest is free space in the file", remedy)
    if facts.used > _SLACK:
        remedy = "set --auto-compaction-retention=1h: etcd keeps every old revision unless it is told to compact"
        return Check("space", "WARN", size, remedy)
    return Check("space", "OK", size)
