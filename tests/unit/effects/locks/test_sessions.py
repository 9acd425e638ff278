"""Locks and leaders tied to sessions, on virtual time: death, freezes and clock steps of the shipped engine."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from solocron import LockLost, Run, every
from solocron.effects.locks.held import Held
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.lock import LockState, state_of
from solocron.testing.cluster import Cluster

LEASE = 15


@every("1h", name="idle")
def idle(run: Run) -> None: ...


def door(cluster: Cluster) -> LockState:
    note = cluster.fleet.database.docs[(Kind.LOCK, "door")][0]
    assert isinstance(note, SmallDocument)
    return state_of(note)


def take(cluster: Cluster, number: int, box: list[Any], **options: Any) -> None:
    """Let a node take the lock in the background; what it got is in the box."""
    member = cluster.member(number)

    def body() -> None:
        box.append(member.scheduler.lock("door", **options).acquire())

    member.process.spawn(body, "take")


def test_a_lock_of_a_running_node_is_tied_to_its_session_and_freed_when_it_dies() -> None:
    cluster = Cluster(idle, nodes=3)
    cluster.run("5s")
    first: list[Held | None] = []
    take(cluster, 0, first, keep_alive=True)
    cluster.run("1s")
    assert first[0] is not None
    assert door(cluster).session in {session.name for session in cluster.sessions()}
    cluster.run("10m")
    assert not first[0].lost
    second: list[Held | None] = []
    take(cluster, 1, second, keep_alive=True, wait="5m")
    cluster.run("1m")
    assert second == []
    cluster.kill(0)
    cluster.run(f"{LEASE + 2}s")
    assert second[0] is not None
    assert second[0].fence > first[0].fence


@pytest.mark.invariant("I8: a body that can be stopped does nothing after its lease")
def test_a_frozen_holder_is_told_that_it_lost_before_it_does_anything_else() -> None:
    cluster = Cluster(idle, nodes=2)
    cluster.run("5s")
    first: list[Held | None] = []
    second: list[Held | None] = []
    take(cluster, 0, first, keep_alive=True)
    cluster.run("1s")
    cluster.freeze(0)
    take(cluster, 1, second, keep_alive=True, wait="5m")
    cluster.run("40s")
    assert second[0] is not None
    cluster.thaw(0)
    assert first[0] is not None
    assert first[0].lost
    with pytest.raises(LockLost):
        first[0].check()
    released: list[bool] = []
    cluster.member(0).process.spawn(lambda: released.append(first[0].release()), "release")  # type: ignore[union-attr]
    cluster.run("2s")
    assert released == [False]
    assert door(cluster).token is not None, "its successor still has it"


def test_rule_5_a_step_of_the_stores_clock_costs_nobody_a_lock_that_is_tied_to_a_session() -> None:
    cluster = Cluster(idle, nodes=2)
    cluster.run("5s")
    first: list[Held | None] = []
    second: list[Held | None] = []
    take(cluster, 0, first, keep_alive=True)
    cluster.run("1s")
    take(cluster, 1, second, keep_alive=True, wait="2m")
    cluster.step_store_clock("30s")
    cluster.run("30s")
    cluster.step_store_clock(timedelta(minutes=-2))
    cluster.run("30s")
    cluster.step_store_clock("3m")
    cluster.run("30s")
    assert second == []
    assert first[0] is not None
    assert not first[0].lost


def test_a_step_of_the_stores_clock_costs_no_lock_that_a_run_of_the_same_node_wants_without_waiting() -> None:
    """The node took its own session for expired, buried it, and the lock was granted to another node."""
    cluster = Cluster(idle, nodes=2)
    cluster.run("5s")
    first: list[Held | None] = []
    second: list[Held | None] = []
    take(cluster, 0, first, keep_alive=True)
    cluster.run("1s")
    cluster.step_store_clock("2m")
    for node in (0, 1):
        take(cluster, node, second, keep_alive=True)
    cluster.run("30s")
    assert second == [None, None]
    assert first[0] is not None
    assert not first[0].lost


def test_a_node_that_stops_frees_its_locks_at_once() -> None:
    cluster = Cluster(idle, nodes=2)
    cluster.run("5s")
    first: list[Held | None] = []
    second: list[Held | None] = []
    take(cluster, 0, first, keep_alive=True)
    cluster.run("1s")
    take(cluster, 1, second, keep_alive=True, wait="5m")
    cluster.stop(0)
    cluster.run("3s")
    assert second[0] is not None
    assert first[0] is not None
    assert first[0].lost


def test_a_grant_whose_answer_was_lost_is_recognised_as_ones_own() -> None:
    cluster = Cluster(idle, nodes=1)
    cluster.run("5s")
    box: list[Held | None] = []
    cluster.fleet.network.script(cluster.process(0).name, "commit lock", after=0.01, answered=False)
    take(cluster, 0, box, at_most="10m")
    cluster.run("10s")
    assert box[0] is not None
    assert box[0].fence == door(cluster).fence


def test_a_grant_that_is_never_heard_of_is_given_back() -> None:
    cluster = Cluster(idle, nodes=1)
    cluster.run("5s")
    name = cluster.process(0).name
    box: list[Any] = []
    member = cluster.member(0)

    def body() -> None:
        try:
            member.scheduler.lock("door", at_most="10m").acquire()
        except Exception as error:
            box.append(error)

    cluster.fleet.network.script(name, "commit lock", after=0.01, answered=False)
    for _ in range(8):
        cluster.fleet.network.script(name, "select lock", after=None)
    cluster.fleet.network.script(name, "select lock", after=0.01)
    member.process.spawn(body, "take")
    cluster.run("60s")
    assert [type(error).__name__ for error in box] == ["StoreUnavailable"]


class Campaign:
    """A leader of a node, and what it was told when."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.told: list[tuple[str, float]] = []
        kernel = cluster.fleet.kernel
        member = cluster.member(number)
        self.leader = member.scheduler.leader(
            "chief",
            on_gain=lambda: self.told.append(("gain", kernel.now)),
            on_loss=lambda: self.told.append(("loss", kernel.now)),
        )
        member.process.spawn(self.leader.campaign, "campaign")


def test_one_leads_and_when_it_resigns_another_does() -> None:
    cluster = Cluster(idle, nodes=3)
    cluster.run("2s")
    campaigns = [Campaign(cluster, number) for number in range(3)]
    cluster.run("20s")
    leaders = [c for c in campaigns if c.leader.is_leader]
    assert len(leaders) == 1
    first = leaders[0]
    fence = first.leader.fence
    number = campaigns.index(first)
    cluster.member(number).process.spawn(first.leader.resign, "resign")
    cluster.run("10s")
    assert [what for what, _ in first.told] == ["gain", "loss"]
    assert not first.leader.is_leader
    assert first.leader.fence is None
    second = next(c for c in campaigns if c.leader.is_leader)
    assert second.leader.fence is not None
    assert fence is not None
    assert second.leader.fence > fence
    with pytest.raises(LockLost):
        first.leader.check()


@pytest.mark.parametrize("fault", ["cut_off", "kill", "freeze"])
def test_loss_is_told_before_anyone_else_can_win(fault: str) -> None:
    cluster = Cluster(idle, nodes=3)
    cluster.run("2s")
    campaigns = [Campaign(cluster, number) for number in range(3)]
    cluster.run("20s")
    number = next(n for n, c in enumerate(campaigns) if c.leader.is_leader)
    first = campaigns[number]
    getattr(cluster, fault)(number)
    both = 0
    for _ in range(400):
        cluster.run("100ms")
        leading = [c for c in campaigns if c.leader.is_leader and fault != "kill"]
        both += len(leading) > 1
    assert both == 0
    winner = next(c for c in campaigns if c is not first and c.leader.is_leader)
    assert winner.told[-1][0] == "gain"
    if fault == "cut_off":
        assert first.told[-1][0] == "loss"
        assert first.told[-1][1] < winner.told[-1][1], "the loss was told first"


def test_a_leader_that_is_released_by_force_is_told() -> None:
    cluster = Cluster(idle, nodes=1)
    cluster.run("2s")
    campaign = Campaign(cluster, 0)
    cluster.run("2s")
    assert campaign.leader.is_leader
    old = campaign.leader.fence
    member = cluster.member(0)
    member.process.spawn(lambda: member.scheduler.force_release("leader:chief", reason="test"), "force")
    cluster.run("12s")
    assert [what for what, _ in campaign.told] == ["gain", "loss", "gain"]
    assert campaign.leader.fence != old
