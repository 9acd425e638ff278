"""No loop of a node dies, and no outcome is lost, whatever a call of the store raises.

A store raises `StoreError` where it is away. Anything else is a bug, a machine without memory, or a body that closed
file descriptors which were not its own; it comes before the store has heard anything, or after it has done its work.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from solocron import Run, Scheduler, every
from solocron.errors import StoreUnavailable
from solocron.events import Events
from solocron.loop import Loop
from solocron.model.change import Change, Kind, SmallDocument
from solocron.model.documents.alarm import TURN
from solocron.model.documents.session import Life
from solocron.runtime import Task, Threads
from solocron.scheduler.hooks import core_of
from solocron.stores.contract import Named, Which
from solocron.testing.cluster import Cluster
from solocron.testing.simulation.kernel import Process
from solocron.testing.simulation.wire import _label

OTHERS = (OSError, RuntimeError)
"""They take the same way as a MemoryError: with --long."""
METHODS = ("update", "read", "holders", "history", "prune", "blocked", "clock", "wait", "open", "identity")
CALLS = {
    "claimer": {"update claim", "update job", "update permit", "read permit"},
    "finisher": {"update job", "update permit"},
    "keeper": {"open", "update session", "update job", "read session", "read held", "read namespace", "identity"},
    "sweeper": {
        *("holders", "prune", "update session", "update held"),
        *("read session", "read calendar", "read key", "read step"),
    },
    "listener": {"wait", "history", "update request", "update job", "read request", "read job"},
    "alarms": {"clock", "blocked", *("update turn", "update alarm", "read alarm", "read job", "read session")},
}
"""What each loop asks of a store in the world below."""


class Eventful(Cluster):
    """Brings every loop to each of its calls: permits, progress, requests, alarms, and a node to be taken over."""

    def __init__(self) -> None:
        @every("10s", name="plain", overlap="queue-all")
        def plain(run: Run) -> None:
            pass

        @every("10s", name="limited", overlap="queue-all", limit="few:1", retries=3)
        def limited(run: Run) -> None:
            self.sleep("2s")

        @every("20s", name="slow", overlap="queue-all", retries=3)
        def slow(run: Run) -> None:
            run.progress(run.attempt, 4)
            self.sleep("6s")

        @every("10s", name="wrong")
        def wrong(run: Run) -> None:
            raise ValueError("as always")

        self.told: list[str] = []
        super().__init__(plain, limited, slow, wrong, nodes=2)
        self.fleet.failed = lambda error: None  # type: ignore[method-assign]

    def _declare(self, scheduler: Scheduler, process: Process) -> None:
        super()._declare(scheduler, process)
        scheduler.alarms(every="5s", failing=6, settle="10s")  # not before the other node is gone
        scheduler.events.on("alarm", lambda event: self.told.append(event.alarms[0]["subject"]))

    def leave_a_request(self) -> None:
        """As a transaction of the user's own does."""
        member = self.member(0)

        def leave() -> None:
            note = member.scheduler.open().request("plain", {"n": 1})
            member.store.update(Named(Kind.REQUEST, (note.name,)), lambda doc, now: Change(note))

        member.process.spawn(leave, "client")

    def held_permits(self) -> list[str | None]:
        docs = [doc for doc, _ in self.fleet.database.docs.values() if isinstance(doc, SmallDocument)]
        return [doc.session for doc in docs if doc.kind is Kind.PERMIT and doc.session is not None]


class Hurt:
    """Makes the store of a node raise: the first and the third time that a loop asks for the same thing."""

    def __init__(self, cluster: Cluster, number: int, loop: str, error: type[Exception], *, after: bool) -> None:
        self._kernel = cluster.fleet.kernel
        self._task, self._error, self._after = f"solocron-{loop}", error, after
        self._asked: Counter[str] = Counter()
        self.struck: Counter[str] = Counter()
        store = cluster.member(number).store
        for method in METHODS:
            setattr(store, method, self._hurting(method, getattr(store, method)))

    def _hurting(self, method: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def hurt(*args: Any, **more: Any) -> Any:
            if self._kernel.current is None or self._kernel.current.name != self._task:
                return call(*args, **more)
            what = f"{method} {_about(args[0])}" if method in ("update", "read") else method
            strikes = self._asked[what] in (0, 2)
            answer = call(*args, **more) if self._after or not strikes else None
            self._asked[what] += 1
            if strikes:
                self.struck[what] += 1
                raise self._error("no memory, or whatever it is")
            return answer

        return hurt


def _about(which: Which) -> str:
    return "turn" if which == Named(Kind.ALARM, (TURN,)) else _label(which)


@pytest.mark.invariant("I24: an ended body is on record within two leases, or its session is given up")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", [MemoryError, *(pytest.param(one, marks=pytest.mark.long) for one in OTHERS)])
@pytest.mark.parametrize("loop", CALLS)
def test_whatever_a_store_call_raises_every_slot_gets_its_record(
    loop: str, error: type[Exception], after: bool
) -> None:
    cluster = Eventful()
    cluster.run("5s")
    hurt = Hurt(cluster, 0, loop, error, after=after)
    cluster.leave_a_request()
    cluster.run("27s")
    cluster.kill(1)
    cluster.run("25s")
    assert_on_record(cluster)
    for _ in range(2):
        cluster.cut_off(0)
        cluster.run("16s")
        cluster.connect(0)
        cluster.leave_a_request()
        cluster.run("30s")
    cluster.run("3m" if loop == "sweeper" else "30s")  # it keeps house once a minute
    assert hurt.struck.keys() >= CALLS[loop]
    assert_on_record(cluster)
    assert [run.status for run in cluster.runs("plain") if run.origin == "trigger"] == ["succeeded"] * 3
    assert len(cluster.sessions()) == 1
    assert not cluster.sessions(Life.DEAD)
    assert cluster.told == ["wrong"], "one alarm, told once"
    cluster.stop(0)
    cluster.run("20s")
    assert cluster.held_permits() == []
    assert not cluster.sessions()


def assert_on_record(cluster: Cluster) -> None:
    """Each slot has ended, up to a moment ago, and started once."""
    for job, seconds in (("plain", 10), ("limited", 10), ("slow", 20)):
        cluster.assert_ran(job)
        over = {run.slot for run in cluster.runs(job) if run.status != "running" and run.origin == "schedule"}
        slot = min(over)
        while slot < cluster.now - timedelta(seconds=30):
            assert slot in over, f"{job} {slot:%H:%M:%S} has no record: {cluster.job(job)}"
            slot += timedelta(seconds=seconds)


@pytest.mark.invariant("I24: an ended body is on record within two leases, or its session is given up")
def test_a_node_that_cannot_record_an_end_gives_its_session_up_and_another_takes_over() -> None:
    """Although its renewals succeed: else the run would be running forever."""

    @every("1m", name="job", retries=1)
    def body(run: Run) -> None:
        pass

    cluster = Cluster(body, nodes=2)
    cluster.fleet.failed = lambda error: None  # type: ignore[method-assign]
    cluster.run("61s")
    [first] = cluster.starts
    broken = next(number for number in (0, 1) if cluster.process(number).name == first.node)
    core_of(cluster.member(broken).scheduler).node.finisher._end = None  # type: ignore[union-attr, method-assign, assignment]
    cluster.run("58s")
    cluster.freeze(1 - broken)
    cluster.run("3s")
    cluster.thaw(1 - broken)
    assert [run.status for run in cluster.runs("job")] == ["succeeded", "running"]
    cluster.run("27s")
    assert cluster.events["session lost"] == 0
    cluster.run("4s")
    assert cluster.events["session lost"] == 1
    cluster.run("5s")
    assert [(run.attempt, run.status) for run in cluster.runs("job")] == [
        (1, "succeeded"),
        (1, "lost"),
        (2, "succeeded"),
    ]
    assert cluster.starts[-1].node != first.node


def test_a_loop_outlives_an_exit_and_an_exception_that_cannot_be_told() -> None:
    class Unspeakable(Exception):
        def __repr__(self) -> str:
            raise MemoryError

    raises: list[BaseException | None] = [SystemExit(1), Unspeakable(), StoreUnavailable("away"), None, None]
    told: list[str] = []
    done = threading.Event()

    def step(now: float) -> float:
        error = raises.pop(0)
        if error is not None:
            raise error
        if not raises:
            done.set()
        return now if raises else now + 60

    events = Events()
    events.on("*", lambda event: told.append(event.name))
    loop = Loop("test", step, runtime=Threads(), events=events, recovered=lambda: told.append("recovered"))
    loop.start()
    assert done.wait(10)
    loop.stop()
    assert loop.join(10)
    assert told == ["loop error", "store error", "recovered"]


def test_a_loop_is_not_gone_while_its_thread_runs_and_its_start_has_not_returned() -> None:
    """`solocron health` said "its loop pulse is gone" right after a start: the pulse looks at all loops, itself too."""
    looked: list[float | None] = []
    done = threading.Event()

    def step(now: float) -> float:
        looked.append(loop.in_step(now))
        done.set()
        return now + 60

    class Slow(Threads):
        def spawn(self, body: Callable[[], None], name: str) -> Task:
            task = super().spawn(body, name)
            assert done.wait(10), "the step runs before the loop has its task"
            return task

    loop = Loop("test", step, runtime=Slow(), events=Events())
    loop.start()
    loop.stop()
    assert loop.join(10)
    assert looked == [0.0]


def test_definitions_that_could_not_be_written_are_written_with_a_later_look() -> None:
    """A single node sees no change of its fleet that would make it try again."""

    @every("1m", name="job")
    def body(run: Run) -> None:
        pass

    cluster = Cluster(nodes=0)
    cluster.start(0, body)
    cluster.fleet.network.script(cluster.process(0).name, "select job", after=None)
    cluster.run("2m")
    assert cluster.job("job").name == "job"
