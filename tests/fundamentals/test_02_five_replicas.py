"""Every replica has the schedule; for each slot one of them wins. Nothing has to be configured for that."""

from __future__ import annotations

from collections.abc import Callable

from solocron import Run, every
from solocron.testing.clock import ManualClock
from solocron.testing.cluster import Cluster


def test_of_five_replicas_that_look_at_the_same_moment_one_runs_the_slot() -> None:
    sent: list[str] = []

    @every("1h")
    def digest(run: Run) -> None:
        sent.append(f"{run.slot:%H:%M}")

    clock = ManualClock()
    replicas = [clock.scheduler(digest, node=f"replica-{number}") for number in range(5)]
    for replica in replicas:
        replica.tick()
    for _ in range(3):
        clock.advance("1h")
        for replica in replicas:
            replica.tick()
    assert sent == ["01:00", "02:00", "03:00"]


def test_the_record_tells_which_replica_it_was() -> None:
    @every("1h")
    def digest() -> None: ...

    clock = ManualClock()
    first, second = clock.scheduler(digest, node="first"), clock.scheduler(digest, node="second")
    first.tick()
    clock.advance("1h")
    assert [run.node for run in second.tick()] == ["second"]
    assert first.tick() == []
    assert [run.node for run in first.runs("digest")] == ["second"]


def test_five_nodes_with_threads_clocks_and_a_network_agree_as_well(cluster: Callable[..., Cluster]) -> None:
    """A cluster is simulated: the shipped engine, on virtual time and a virtual network."""

    @every("1h")
    def digest() -> None: ...

    fleet = cluster(digest, nodes=5, lease="15m")
    fleet.run("6h1m")
    fleet.assert_ran("digest", times=6)
