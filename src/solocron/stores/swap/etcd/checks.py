"""Facts behind `doctor` and the tier on etcd: version, space, compaction, alarms, members."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
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
_GOES_BACK = (((3, 4, 0), (3, 4, 31)), ((3, 5, 0), (3, 5, 13)))
"""Releases whose revision may go back if they crash while they compact (etcd issue 17780): a mark could come again."""
_QUOTA = 2 * 1024**3
"""Bytes at which the whole cluster stops, unless --quota-backend-bytes says otherwise."""
_NEAR = 0.75
"""Share of the quota at which `doctor` fails: there is still time to compact."""
_NOTED = 0.1
"""Share of the quota at which `doctor` warns, of what is in use, and of what is only free space in the file."""
_APART = 0.2
"""Seconds by which the clocks of two members may differ without a word; each tells whole seconds."""
_COMPACT = "--auto-compaction-retention=5m"


@dataclass(frozen=True, slots=True)
class EtcdFacts:
    """State that a member reports; None where the user may not ask."""

    version: str
    size: int
    used: int
    leader: bool
    alarms: tuple[str, ...] | None
    members: int | None
    quota: int | None = None
    """Bytes; None if the member does not tell."""
    compacted: bool | None = None
    """Whether old revisions were ever removed; None if the member does not tell."""
    apart: float | None = None
    """Seconds by which the clocks of two members differ at least; None if fewer than two have replied."""

    @property
    def release(self) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall(r"\d+", self.version)[:3])


def ask_facts(link: EtcdLink, *, closely: bool = False) -> EtcdFacts:
    """Ask the member that is connected; `closely`: also for its quota, which is a long page, and for all clocks."""
    status = link.read("/v3/maintenance/status", {})
    alarms = _if_allowed(link, "/v3/maintenance/alarm", {"action": "GET"})
    members = _if_allowed(link, "/v3/cluster/member/list", {})
    metrics = link.metrics() if closely else {}
    oldest = metrics.get("etcd_debugging_mvcc_compact_revision")
    return EtcdFacts(
        version=str(status.get("version", "")),
        size=int(status.get("dbSize", 0)),
        used=int(status.get("dbSizeInUse", 0)),
        leader=int(status.get("leader", 0)) != 0,
        alarms=None if alarms is None else tuple(str(one.get("alarm", "")) for one in alarms.get("alarms", ())),
        members=None if members is None else len(members.get("members", ())),
        quota=int(status.get("dbSizeQuota", 0) or metrics.get("etcd_server_quota_backend_bytes", 0)) or None,
        compacted=None if oldest is None else oldest > 0,
        apart=_apart(link.clocks().values()) if closely else None,
    )


def _apart(clocks: Collection[tuple[float, float]]) -> float | None:
    """Return the least by which two of some clocks differ, each of which is only known between two bounds."""
    if len(clocks) < 2:
        return None
    return max(0.0, max(low for low, _ in clocks) - min(high for _, high in clocks))


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
    if facts.members == 1 and _is_of(facts, _HASTY_ALONE):
        why = (
            f"a single member of etcd {facts.version} may reply before its log has the commit, and lose it in a crash; "
            "3.4.21 and 3.5.5 have the fix"
        )
        return Capabilities(tier=Tier.C, why=why, notifies=True, clock_within=clock.width)
    if _is_of(facts, _GOES_BACK):
        why = (
            f"etcd {facts.version} may count revisions again if it crashes while it compacts, so that an old state "
            "could pass for a new one; 3.4.32 and 3.5.14 have the fix"
        )
        return Capabilities(tier=Tier.C, why=why, notifies=True, clock_within=clock.width)
    why = "etcd replies after a majority has synced the commit to disk, and its transactions are strictly serializable"
    return Capabilities(tier=Tier.A, why=why, notifies=True, clock_within=clock.width)


def _is_of(facts: EtcdFacts, releases: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> bool:
    return any(first <= facts.release <= last for first, last in releases)


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
    if facts.apart is not None:
        yield _clocks(facts.apart)
    yield from check_encryption(address, "etcds")
    told = f"known to {clock.width / MILLISECOND:.0f} ms; etcd tells whole seconds, and a node asks when they turn"
    yield Check("time", "OK", told)


def _space(facts: EtcdFacts) -> Check:
    quota = facts.quota or _QUOTA
    whose = "its quota" if facts.quota else "the default quota"
    size = f"{_mb(facts.size)}, {_mb(facts.used)} of it in use; {whose} is {_mb(quota)}"
    if facts.compacted is False:
        size += "; no old revision was ever removed"
    compact = f"set {_COMPACT}: etcd keeps every old revision unless it is told to compact"
    if facts.size >= quota * _NEAR:
        remedy = f"set {_COMPACT}, compact and defragment; at its quota the whole cluster stops"
        return Check("space", "FAIL", size, remedy)
    if facts.size - facts.used > quota * _NOTED:
        remedy = "etcdctl defrag on one member after the other"
        return Check("space", "WARN", f"{size}; the rest is free space in the file", remedy)
    if facts.used > quota * _NOTED:
        kept = f"keep history for a shorter time (Scheduler(keep=...)), or raise the quota; {_COMPACT} if it is not set"
        return Check("space", "WARN", size, kept if facts.compacted else compact)
    return Check("space", "OK", size)


def _clocks(apart: float) -> Check:
    if apart < _APART:
        return Check("clocks", "OK", "no two members are known to differ")
    detail = f"two members differ by {apart:.1f} s or more: a job may start that much before or after its time"
    return Check("clocks", "WARN", detail, "keep the members' clocks by NTP")


def _mb(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
