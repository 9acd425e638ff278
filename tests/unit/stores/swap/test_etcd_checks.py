"""What the release and the number of members of an etcd mean for the promise."""

from __future__ import annotations

import pytest

from solocron.stores.contract import Tier
from solocron.stores.swap.etcd.address import EtcdAddress
from solocron.stores.swap.etcd.checks import EtcdFacts, capabilities_of, checks_of
from solocron.stores.swap.server_time import ServerTime
from solocron.stores.url import parse


@pytest.mark.parametrize(
    ("version", "members", "tier", "word"),
    [
        ("3.5.2", 3, Tier.C, "3.5.3 has the fix"),
        ("3.5.4", 1, Tier.C, "before its log has the commit"),
        ("3.4.20", 1, Tier.C, "before its log has the commit"),
        ("3.5.4", 3, Tier.C, "count revisions again"),
        ("3.4.31", 3, Tier.C, "3.4.32 and 3.5.14 have the fix"),
        ("3.5.13", 3, Tier.C, "count revisions again"),
        ("3.5.5", 1, Tier.C, "count revisions again"),
        ("3.5.4", None, Tier.C, "count revisions again"),
        ("3.4.32", 1, Tier.A, "majority"),
        ("3.4.32", 3, Tier.A, "majority"),
        ("3.5.14", 3, Tier.A, "majority"),
        ("3.6.0", 1, Tier.A, "majority"),
    ],
)
def test_releases_that_a_crash_harms_are_tier_c(version: str, members: int | None, tier: Tier, word: str) -> None:
    facts = EtcdFacts(version=version, size=0, used=0, leader=True, alarms=(), members=members)
    found = capabilities_of(facts, ServerTime())
    assert found.tier is tier
    assert word in found.why


MB = 1_000_000


@pytest.mark.parametrize(
    ("size", "used", "quota", "compacted", "level", "words"),
    [
        (150 * MB, 150 * MB, None, None, "OK", "the default quota is 2147 MB"),
        (150 * MB, 150 * MB, 8_000 * MB, False, "OK", "its quota is 8000 MB; no old revision was ever removed"),
        (230 * MB, 230 * MB, None, None, "WARN", "--auto-compaction-retention=5m"),
        (230 * MB, 230 * MB, None, True, "WARN", "keep history for a shorter time"),
        (230 * MB, 10 * MB, None, True, "WARN", "etcdctl defrag"),
        (1_700 * MB, 1_700 * MB, None, False, "FAIL", "the whole cluster stops"),
        (1_700 * MB, 100 * MB, 8_000 * MB, True, "WARN", "etcdctl defrag"),
        (1_700 * MB, 1_700 * MB, 8_000 * MB, False, "WARN", "--auto-compaction-retention=5m"),
        (25 * MB, 25 * MB, 32 * MB, False, "FAIL", "the whole cluster stops"),
    ],
)
def test_space_is_judged_by_the_quota_of_the_server(
    size: int, used: int, quota: int | None, compacted: bool | None, level: str, words: str
) -> None:
    facts = EtcdFacts(
        version="3.5.9", size=size, used=used, leader=True, alarms=(), members=3, quota=quota, compacted=compacted
    )
    address = EtcdAddress.of(parse("etcd://127.0.0.1/p"), timeout=1.0)
    (space,) = (check for check in checks_of(facts, address, ServerTime()) if check.name == "space")
    assert space.level == level
    assert words in f"{space.detail} {space.remedy}"
