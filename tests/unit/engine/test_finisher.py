"""Outcomes that pile up hold claims back, recording them lets claims go on; under backlog they gather."""

from __future__ import annotations

from typing import Any

import pytest

from solocron.engine.finisher import BATCH, GATHER, Finisher
from solocron.engine.memory import Memory
from solocron.engine.permits import Permits
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Origin
from solocron.model.transitions.finishing import Outcome
from solocron.stores.contract import Applied, ChangeFn, Named, Result, Verdict
from tests.unit.engine.kit import OPEN, attempts_of, context_of


class Refusing:
    """A store that declines every change; what happens is noted in its order."""

    def __init__(self, seen: list[str]) -> None:
        self._seen = seen

    def update(self, which: Named, change: ChangeFn, **_: Any) -> Applied:
        self._seen.append("written")
        return Applied(results=tuple(Result(name, Verdict.DECLINED) for name in which.names), now=1)


class Poisoned:
    """A store that raises whatever the batch is that has the outcome of one job in it; notes what it has written."""

    def __init__(self, job: str, error: type[Exception]) -> None:
        self._job = job
        self._error = error
        self.written: list[str] = []

    def update(self, which: Named, change: ChangeFn, **_: Any) -> Applied:
        if self._job in which.names:
            raise self._error("not this one")
        self.written += which.names
        return Applied(results=tuple(Result(name, Verdict.DECLINED) for name in which.names), now=1)


class Stage:
    """A finisher with a store that only notes what it is asked."""

    def __init__(self, *, backlog: bool = False, store: object = None) -> None:
        self.seen: list[str] = []
        context = self._context = context_of(store or Refusing(self.seen), max_running=1)
        context.signals.claim.place_free = lambda: self.seen.append("a place is free")  # type: ignore[method-assign]
        context.signals.finish.wake = lambda: self.seen.append("woken")  # type: ignore[method-assign]
        self.backlog(backlog)
        self._attempts = attempts_of(context)
        self._ended = 0
        self._finisher = Finisher(context, self._attempts, Permits(context, OPEN), Memory(context.runtime))

    def backlog(self, backlog: bool) -> None:
        self._context.signals.claim.backlog = backlog

    def end(self, count: int = 1) -> None:
        """So many bodies end."""
        for number in range(self._ended + 1, self._ended + count + 1):
            job = Job(name=f"j{number}", incarnation=1, definition=Definition(handler="h", schedule=None), cursor=0)
            hold = Hold(
                run=f"j@{number}", slot=1, origin=Origin.SCHEDULE, attempt=1, tries=0, session="s", node="n1",
                fence=number, claimed_at=1,
            )  # fmt: skip
            running = self._attempts.add(job, hold, "s")
            assert running is not None
            self._finisher.add(running, Outcome.succeeded())
        self._ended += count

    def waiting(self) -> int:
        return self._finisher.waiting()

    def step(self, *, later: float = 0.0) -> tuple[list[str], float]:
        """What one step did, and in how many seconds it wants the next."""
        self.seen.clear()
        now = self._context.runtime.clock.boot() + later
        return self.seen, self._finisher.step(now) - now


def test_claims_that_outcomes_held_back_go_on_once_these_are_written() -> None:
    """No body may be left whose end would wake the claimer, which else sleeps until its next poll."""
    stage = Stage()
    stage.end()
    assert stage.step()[0] == ["written", "a place is free"]


def test_outcomes_wait_a_moment_for_each_other_while_more_is_due() -> None:
    stage = Stage(backlog=True)
    stage.end(3)
    assert stage.seen.count("woken") == 1  # the first one sets the moment; a switch of threads for each is too much
    seen, pause = stage.step()
    assert seen == []
    assert 0 < pause <= GATHER
    assert stage.step(later=GATHER)[0] == ["written", "a place is free"]


def test_outcomes_that_fill_a_batch_wait_for_nothing() -> None:
    stage = Stage(backlog=True)
    stage.end(BATCH)
    assert stage.seen.count("woken") == 2
    assert stage.step()[0] == ["written", "a place is free"]


def test_outcomes_wait_for_nothing_once_the_backlog_is_drained() -> None:
    stage = Stage(backlog=True)
    stage.end(2)
    stage.backlog(False)
    stage.seen.clear()
    stage.end()
    assert "woken" in stage.seen
    assert stage.step()[0] == ["written", "a place is free"]


@pytest.mark.invariant("I24: an ended body is on record within two leases, or its session is given up")
@pytest.mark.parametrize("error", [MemoryError, OSError, RuntimeError])
def test_an_outcome_that_makes_the_store_raise_is_kept_and_keeps_nobody_else(error: type[Exception]) -> None:
    store = Poisoned("j7", error)
    stage = Stage(store=store)
    stage.end(BATCH)
    raised = 0
    for _ in range(100):
        try:
            stage.step()
        except error:
            raised += 1
    assert len(store.written) == len(set(store.written)) == BATCH - 1
    assert stage.waiting() == 1, "it is still tried"
    assert raised < 100
    store._job = ""
    stage.step()
    assert set(store.written) == {f"j{number}" for number in range(1, BATCH + 1)}
    assert stage.waiting() == 0


def test_a_refused_end_is_left_to_the_next_renewal() -> None:
    """The picture of the fleet shows a node that woke up and came too late; its own log alone would not."""
    stage = Stage()
    stage.end(2)
    stage.step()
    told = stage._attempts.lease.report(0.0, 0).refused
    assert [(one.run, one.fence, one.outcome) for one in told] == [("j@1", 1, "succeeded"), ("j@2", 2, "succeeded")]
