"""A node that shuts down while a claim is under way: nothing starts under a session that it has ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from solocron import Scheduler
from solocron.engine.runner import Runner
from solocron.events import Event
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.stores.contract import Applied, ChangeFn, Due, Gate, HeldBy, Named, Which
from solocron.stores.memory import MemoryStore

LONG = 30.0


class Slow(MemoryStore):
    """Holds the first claim that finds something: its request or its answer, until it is let go."""

    def __init__(self, hold: str) -> None:
        super().__init__()
        self.hold = hold
        self.under_way = threading.Event()
        self.let_go = threading.Event()
        self.answered = threading.Event()
        self.ended = threading.Event()

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        if isinstance(which, Due) and not self.under_way.is_set():
            return self._claim(which, change, session, gate)
        if isinstance(which, HeldBy) and self.ended.is_set():
            assert self.answered.wait(LONG)
        applied = super().update(which, change, session=session, gate=gate)
        if isinstance(which, Named) and which.kind is Kind.SESSION and applied.results[0].doc.state == "dead":
            self.ended.set()
            if self.hold != "the answer until it drains":
                self.let_go.set()
        return applied

    def _claim(self, which: Due, change: ChangeFn, session: str | None, gate: Gate | None) -> Applied:
        found = self.read(which)
        if not found:
            return super().update(which, change, session=session, gate=gate)
        if self.hold == "the request":
            self.under_way.set()
            assert self.let_go.wait(LONG)
            applied = super().update(which, change, session=session, gate=gate)
            self.answered.set()
            return applied
        applied = super().update(which, change, session=session, gate=gate)
        self.under_way.set()
        assert self.let_go.wait(LONG)
        return applied

    def signal(self) -> None:
        super().signal()
        if self.hold == "the answer until it drains":
            self.let_go.set()


class Case:
    """Schedulers on one slow store, and what their bodies did."""

    def __init__(self, hold: str) -> None:
        self.store = Slow(hold)
        self.bodies: list[str] = []
        self.lost: list[Event] = []

    def make(self, node: str) -> Scheduler:
        scheduler = Scheduler(self.store, node=node)
        scheduler.every("1h", name="job", retries=1)(lambda: self.bodies.append(node))
        scheduler.on("session lost", self.lost.append)
        return scheduler

    @contextmanager
    def running(self) -> Iterator[Case]:
        """Let the store know when an answer has been dealt with."""
        start = Runner.start

        def started(runner: Runner, *args: Any) -> bool:
            try:
                return start(runner, *args)
            finally:
                self.store.answered.set()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Runner, "start", started)
            yield self


def stopped_while_claiming(scheduler: Scheduler, store: Slow, grace: str) -> bool:
    scheduler.start()
    scheduler.trigger("job")
    assert store.under_way.wait(LONG)
    return scheduler.stop(grace=grace)


def job_in(store: Slow) -> Job:
    (doc,) = store.read(Named(Kind.JOB, ("job",)))
    assert isinstance(doc, Job)
    return doc


@pytest.mark.invariant("I21: after a drain nothing is left")
def test_a_claim_that_is_answered_after_the_session_is_closed_starts_nothing() -> None:
    with Case("the answer").running() as case:
        assert stopped_while_claiming(case.make("a"), case.store, "0s")
        assert case.bodies == []
        assert job_in(case.store).active == ()
        case.make("b").tick()
    assert case.bodies == ["b"]
    assert case.lost == []


def test_a_claim_that_arrives_after_the_session_is_closed_is_no_loss_of_the_lease() -> None:
    with Case("the request").running() as case:
        assert stopped_while_claiming(case.make("a"), case.store, "0s")
        assert (case.bodies, case.lost) == ([], [])
        case.make("b").tick()
    assert case.bodies == ["b"]


@pytest.mark.invariant("I21: after a drain nothing is left")
def test_what_a_claim_under_way_brings_is_handed_back_on_nobodys_account() -> None:
    with Case("the answer until it drains").running() as case:
        scheduler = case.make("a")
        assert stopped_while_claiming(scheduler, case.store, "30s")
        assert case.bodies == []
        job = job_in(case.store)
        assert job.active == ()
        assert [waiting_run.tries for waiting_run in job.waiting_runs] == [0]
        case.make("b").tick()
    assert case.bodies == ["b"]
    assert [(run.status, run.reason, run.node) for run in scheduler.runs("job")] == [
        ("succeeded", None, "b"),
        ("cancelled", "handed back: its node shuts down", "a"),
    ]
