"""Shards, limits, nodes and preference at the front: declared, refused, run, listed."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from solocron import ConflictError, InvalidError, Run, Scheduler, every
from solocron.stores.memory import MemoryStore, World


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler("memory://", enabled=True, node="here")


def test_a_sharded_job_runs_every_shard_and_waiting_for_it_waits_for_all(scheduler: Scheduler) -> None:
    seen: Counter[tuple[object, object]] = Counter()

    @scheduler.every("1d", shards=3)
    def sharded(run: Run) -> None:
        seen[(run.shard, run.shards)] += 1

    with scheduler:
        run = scheduler.trigger("sharded", key="k")
        assert scheduler.wait(run, "20s").status == "succeeded"
        assert seen == {(0, 3): 1, (1, 3): 1, (2, 3): 1}
        assert scheduler.trigger("sharded", key="k") == run
        assert [view.shard for view in sorted(scheduler.runs("sharded"), key=lambda view: view.run)] == ["0", "1", "2"]
        assert len(scheduler.open().attempts(run)) == 3
        assert scheduler.get_job("sharded").shards == 3
        with pytest.raises(InvalidError, match="no shard 'eu', so it was not triggered"):
            scheduler.trigger("sharded", shard="eu")


def test_the_shard_that_ended_worst_stands_for_all(scheduler: Scheduler) -> None:
    @scheduler.every("1d", shards=("good", "bad"))
    def sharded(run: Run) -> None:
        if run.shard == "bad":
            raise ValueError("no")

    with scheduler:
        view = scheduler.wait(scheduler.trigger("sharded"), "20s")
        assert (view.status, view.shard) == ("failed", "bad")


def test_runs_under_a_limit_take_turns_over_jobs_and_shards(scheduler: Scheduler) -> None:
    mutex = threading.Lock()
    running, most = 0, 0

    def work(run: Run) -> None:
        nonlocal running, most
        with mutex:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.02)
        with mutex:
            running -= 1

    for name in ("one", "two"):
        scheduler.every("1d", name=name, limit="scarce:2", shards=3)(work)
    with scheduler:
        for run in [scheduler.trigger(name) for name in ("one", "two")]:
            assert scheduler.wait(run, "30s").status == "succeeded"
    assert most == 2
    (limit,) = scheduler.limits()
    assert (limit.name, limit.most, limit.jobs, limit.taken) == ("scarce", 2, ("one", "two"), ())


def test_a_permit_that_is_taken_says_by_whom(scheduler: Scheduler) -> None:
    started, go = threading.Event(), threading.Event()

    @scheduler.every("1d", limit="scarce:1")
    def slow() -> None:
        started.set()
        go.wait(20)

    with scheduler:
        run = scheduler.trigger("slow")
        assert started.wait(20)
        (limit,) = scheduler.limits()
        assert [(one.permit, one.node, one.run) for one in limit.taken] == [("scarce:0", "here", run)]
        go.set()
        scheduler.wait(run, "20s")


def test_every_node_runs_its_part() -> None:
    world = World()
    scheduler = Scheduler(MemoryStore(world=world), enabled=True, node="here")
    other = Scheduler(MemoryStore(world=world), enabled=True, node="there")
    ran: Counter[str] = Counter()

    def warm(run: Run) -> None:
        ran[run.node] += 1

    for one in (scheduler, other):
        one.every("1d", name="warm", nodes="all")(warm)
    with scheduler, other:
        assert scheduler.wait(scheduler.trigger("warm"), "20s").status == "succeeded"
    assert ran == {"here": 1, "there": 1}


def test_limits_with_different_numbers_are_refused(scheduler: Scheduler) -> None:
    scheduler.every("1d", name="one", limit="scarce:2")(lambda: None)
    with pytest.raises(InvalidError, match="a limit has one number"):
        scheduler.every("1d", name="two", limit="scarce:3")(lambda: None)
    scheduler.register(lambda: None, name="work")
    with scheduler, pytest.raises(ConflictError, match="a limit has one number"):
        scheduler.add("three", "work", "* * * * *", limit="scarce:4")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"nodes": 0}, "nodes=0"),
        ({"nodes": "some"}, "nodes='some'"),
        ({"nodes": True}, "nodes=True"),
        ({"nodes": 101}, "nodes=101"),
        ({"nodes": 2, "shards": 2}, "do not go together"),
        ({"nodes": "all", "prefer": "last"}, "do not go together"),
        ({"prefer": "first"}, "prefer='first'"),
        ({"limit": "db"}, "limit='db'"),
        ({"shards": 0}, "shards=0"),
    ],
)
def test_what_cannot_be_placed_is_refused(options: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidError, match=why):
        every("1d", **options)
