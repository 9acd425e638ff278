"""What the release and the number of members of an etcd mean for the promise."""

from __future__ import annotations

import pytest

from solocron.stores.contract import Tier
from solocron.stores.swap.etcd.checks import EtcdFacts, capabilities_of
from solocron.stores.swap.server_time import ServerTime


@pytest.mark.parametrize(
    ("version", "members", "tier", "word"),
    [
        ("3.5.2", 3, Tier.C, "3.5.3 has the fix"),
        ("3.5.4", 1, Tier.C, "before its log has the commit"),
        ("3.4.20", 1, Tier.C, "before its log has the commit"),
        ("3.5.4", 3, Tier.A, "majority"),
        ("3.4.20", 3, Tier.A, "majority"),
        ("3.4.21", 1, Tier.A, "majority"),
        ("3.5.5", 1, Tier.A, "majority"),
        ("3.6.0", 1, Tier.A, "majority"),
        ("3.5.4", None, Tier.A, "majority"),
    ],
)
def test_releases_that_lose_commits_in_a_crash_are_tier_c(
    version: str, members: int | None, tier: Tier, word: str
) -> None:
    facts = EtcdFacts(version=version, size=0, used=0, leader=True, alarms=(), members=members)
    found = capabilities_of(facts, ServerTime())
    assert found.tier is tier
    assert word in found.why
