"""SIGTERM drains a node whichever thread of the process the kernel hands it to, also right after a freeze."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import MakeFleet


@pytest.mark.invariant("I21: after a drain nothing is left")
def test_a_sigterm_that_another_thread_than_the_main_one_gets_is_noticed_too(make_fleet: MakeFleet) -> None:
    """Nothing wakes Python's main thread then: it has to look by itself."""
    fleet = make_fleet("tests.e2e.jobs.slow", lease="3s")
    (replica,) = fleet.start(1)
    fleet.scheduler.trigger("signalling")
    assert replica.wait(within=15) == 0
    assert [event["clean"] for event in replica.events("node stopped")] == [True]


@pytest.mark.invariant("I21: after a drain nothing is left")
def test_a_sigterm_together_with_the_thaw_drains(make_fleet: MakeFleet) -> None:
    fleet = make_fleet("tests.e2e.jobs.slow", lease="3s")
    replicas = fleet.start(3)
    for replica in replicas:
        fleet.freeze(replica)
    for replica in replicas:
        replica.thaw()
        replica.term()
    assert [replica.wait(within=30) for replica in replicas] == [0, 0, 0]
