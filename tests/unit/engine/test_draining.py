"""A node that shuts down while a claim is under way: nothing starts under a session that it has ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator
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


@pytest.fixture
def bodies() -> list[str]:
    return []


@pytest.fixture
def lost() -> list[Event]:
    return []


@pytest.fixture
def make(bodies: list[str], lost: list[Event], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def make(store: Slow, node: str) -> Scheduler:
        scheduler = Scheduler(store, node=node)
        scheduler.every("1h", name="job", retries=1)(lambda: bodies.append(node))
        scheduler.on("session lost", lost.append)
        start = Runner.start

        def started(self: Runner, *args: Any) -> bool:
            try:
                return start(self, *args)
            finally:
                store.answered.set()

        monkeypatch.setattr(Runner, "start", started)
        return scheduler

    return make


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
def test_a_claim_that_is_answered_after_the_goodbye_starts_nothing(
    make: Any, bodies: list[str], lost: list[Event]
) -> None:
    store = Slow("the answer")
    assert stopped_while_claiming(make(store, "a"), store, "0s")
    assert bodies == []
    assert job_in(store).active == ()
    make(store, "b").tick()
    assert bodies == ["b"]
    assert lost == []


def test_a_claim_that_arrives_after_the_goodbye_is_no_loss_of_the_lease(
    make: Any, bodies: list[str], lost: list[Event]
) -> None:
    store = Slow("the request")
    assert stopped_while_claiming(make(store, "a"), store, "0s")
    assert (bodies, lost) == ([], [])
    make(store, "b").tick()
    assert bodies == ["b"]


@pytest.mark.invariant("I21: after a drain nothing is left")
def test_what_a_claim_under_way_brings_is_handed_back_on_nobodys_account(make: Any, bodies: list[str]) -> None:
    store = Slow("the answer until it drains")
    scheduler = make(store, "a")
    assert stopped_while_claiming(scheduler, store, "30s")
    assert bodies == []
    job = job_in(store)
    assert job.active == ()
    assert [waiting_run.tries for waiting_run in job.waiting_runs] == [0]
    make(store, "b").tick()
    assert bodies == ["b"]
    assert [(run.status, run.reason, run.node) for run in scheduler.runs("job")] == [
        ("succeeded", None, "b"),
        ("cancelled", "handed back: its node shuts down", "a"),
    ]
