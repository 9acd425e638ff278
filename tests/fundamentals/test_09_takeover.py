"""A node dies, or falls silent. When its lease has run out, another goes on, and the first cannot write any more."""

from __future__ import annotations

from collections.abc import Callable

from solocron import Run, every
from solocron.testing.cluster import Cluster

Make = Callable[..., Cluster]


def busy(cluster: Make, retries: int) -> tuple[Cluster, int]:
    """Start three nodes on a job of a minute; return them in the middle of it, and the number of the one at work."""

    @every("10m", name="bill", retries=retries)
    def bill(run: Run) -> None:
        fleet.sleep("1m")
        run.check()  # raises if this attempt may not go on

    fleet = cluster(bill, nodes=3, lease="15s")
    fleet.run("10m30s")
    (start,) = fleet.started("bill")
    return fleet, next(number for number in range(3) if fleet.process(number).name == start.node)


def outcomes(fleet: Cluster) -> list[tuple[int, str]]:
    return [(run.attempt, run.status) for run in fleet.runs("bill")]


def test_after_kill_9_another_node_makes_the_next_attempt(cluster: Make) -> None:
    fleet, victim = busy(cluster, retries=1)
    fleet.kill(victim)
    fleet.run("5s")
    assert outcomes(fleet) == [(1, "running")], "its lease has not run out: it might only be slow"
    fleet.run("3m")
    assert outcomes(fleet) == [(1, "lost"), (2, "succeeded")]


def test_without_retries_the_run_is_lost_and_not_repeated(cluster: Make) -> None:
    """Whether the invoice was sent is not known, so a person decides."""
    fleet, victim = busy(cluster, retries=0)
    fleet.kill(victim)
    fleet.run("3m")
    assert outcomes(fleet) == [(1, "lost")]


def test_a_node_that_was_frozen_wakes_up_without_its_run(cluster: Make) -> None:
    fleet, victim = busy(cluster, retries=1)
    fleet.freeze(victim)
    fleet.run("30s")
    fleet.thaw(victim)  # the body of the first attempt goes on, and is told to stop
    fleet.run("3m")
    assert outcomes(fleet) == [(1, "lost"), (2, "succeeded")]
    first, second = fleet.started("bill")
    assert second.fence > first.fence, "what the first writes now is refused, by the store and by yours"
