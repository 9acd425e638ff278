"""I23: the first start within a beat and a second of the store's return, whatever the outage, at the default lease.

A renewal that ends jeopardy wakes the claimer, and so does a leap of the store's clock; no node sleeps out a poll.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from solocron import Run, every
from solocron.runtime import Threads
from solocron.scheduler.hooks import make_node, scheduler_on
from solocron.testing.cluster import Cluster

LEASE, BEAT = 15.0, 5.0


@pytest.mark.invariant("I23: slots start soon after the store is back")
@pytest.mark.parametrize(
    ("nodes", "share"), [(1, 0.1), (1, 0.4), (1, 0.5), (1, 0.7), (1, 0.9), (1, 1.1), (3, 0.4), (3, 0.9)]
)
def test_slots_start_soon_after_the_store_is_back(nodes: int, share: float) -> None:
    """After an outage of half a lease the whole fleet slept on for up to half a minute."""

    @every("1s", name="job")
    def body(run: Run) -> None:
        pass

    for begin in (20.0, 22.5):  # sooner and later after a renewal
        cluster = Cluster(body, nodes=nodes)
        cluster.run(begin)
        cluster.fleet.database.up = False
        cluster.run(share * LEASE)
        cluster.fleet.database.up = True
        back, before = cluster.now, len(cluster.starts)
        cluster.run(BEAT + 1)
        first = [start.at - back for start in cluster.starts[before:]]
        assert first, f"I23: no start within {BEAT + 1:g} s of the store's return, away for {share:g} leases"


@pytest.mark.invariant("I23: slots start soon after the store is back")
def test_a_claimer_that_looked_while_the_namespace_was_read_again_does_not_sleep_on() -> None:
    """The renewal after a lost reply does not tell of the namespace: the keeper reads it, and it is as it was.

    The end of jeopardy woke the claimer in the middle of that read. It found nothing that it may claim and slept for
    a poll.
    """
    scheduler = scheduler_on(Threads(), "memory://", enabled=True, lease="15s")
    node = make_node(scheduler)
    node.keeper.step(node.context.runtime.clock.boot())
    claim = node.context.signals.claim
    node.gate.observe(None)
    assert not node.gate.may_claim()
    claim.clear()
    node.keeper.step(node.context.runtime.clock.boot())
    assert node.gate.may_claim()
    assert claim.is_set(), "I23: the claimer sleeps on although it may claim"


@pytest.mark.invariant("I23: slots start soon after the store is back")
def test_a_leap_of_the_stores_clock_is_noticed_within_a_beat() -> None:
    @every("2m", name="job")
    def body(run: Run) -> None:
        pass

    cluster = Cluster(body, nodes=1)
    cluster.run("10s")
    cluster.step_store_clock(timedelta(seconds=115))
    cluster.run(BEAT + 1)
    assert len(cluster.starts) == 1
