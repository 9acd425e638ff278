"""A claim is started once, however slowly the node gets round to it after the store has answered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pytest

from solocron.engine.attempts import Attempts
from solocron.engine.claim_pass import ClaimPass, Starter
from solocron.engine.claimer import Claimer
from solocron.engine.memory import Memory
from solocron.engine.node_context import NodeContext
from solocron.engine.permits import Permits
from solocron.engine.registrar import Registrar
from solocron.engine.requirements import Requirements
from solocron.engine.runner import Runner
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Origin
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import Needs
from solocron.stores.contract import Applied, ChangeFn, Due, Result, Verdict
from tests.unit.engine.kit import OPEN, attempts_of, context_of


def claimed(name: str) -> tuple[Job, Hold]:
    hold = Hold(
        run=f"{name}@1", slot=1, origin=Origin.SCHEDULE, attempt=1, tries=0, session="s", node="n1", fence=1,
        claimed_at=1,
    )  # fmt: skip
    job = Job(
        name=name, incarnation=1, definition=Definition(handler="h", schedule=None), cursor=0, fence=1, active=(hold,)
    )
    return job, hold


class Granting:
    """A store that grants the same batch to every node that asks."""

    def __init__(self, batch: list[tuple[Job, Hold]]) -> None:
        self._batch = batch

    def update(self, which: Due, change: ChangeFn, **_: Any) -> Applied:
        return Applied(results=tuple(Result(j.name, Verdict.APPLIED, j, hold) for j, hold in self._batch), now=1)


def claiming(context: NodeContext, attempts: Attempts, runner: object) -> Claimer:
    requirements = Requirements(context, {}, cast(Permits, None), cast(Registrar, None))
    starter = Starter(context, Memory(context.runtime), cast(Runner, runner))
    return Claimer(context, attempts, OPEN, ClaimPass(context, attempts, OPEN, requirements, starter))


@pytest.mark.invariant("I2: an attempt is claimed at most once, and none after the last word of its run")
def test_a_claim_that_was_answered_and_not_yet_started_is_not_adopted() -> None:
    """While the first of a batch is started, the keeper looks: the others are in the store and not in the table yet.

    It took them for claims whose answer was lost, ran them, and the claimer ran them again.
    """
    batch = [claimed("one"), claimed("two")]
    context = context_of(Granting(batch))
    attempts = attempts_of(context)
    adopted: list[str] = []

    class Slow:
        """Takes its time to start a body, so that the keeper comes in between."""

        def start(self, job: Job, hold: Hold, session: str) -> bool:
            adopted.extend(hold.run for _, hold in attempts.unknown(batch))
            return attempts.add(job, hold, session) is not None

    claiming(context, attempts, Slow()).step(context.runtime.clock.boot())
    assert adopted == []
    assert {running.hold.run for running in attempts.running()} == {"one@1", "two@1"}


@pytest.mark.invariant("I2: an attempt is claimed at most once, and none after the last word of its run")
def test_a_claim_that_has_ended_is_not_started_again() -> None:
    attempts = attempts_of(context_of(None))
    job, hold = claimed("one")
    running = attempts.add(job, hold, "s")
    assert running is not None
    assert attempts.add(job, hold, "s") is None, "it is under way"
    attempts.body_ended(running)
    attempts.done([running])
    assert attempts.add(job, hold, "s") is None, "it is over"


def test_a_drained_backlog_wakes_the_finisher_once() -> None:
    """Outcomes wait for each other while more is due than a claim can take, and not a moment longer."""

    class Falling:
        """A store with this many jobs due, of which each claim takes what it asks for."""

        due = 20

        def update(self, which: Due, change: ChangeFn, **_: Any) -> Applied:
            taken = min(which.limit, self.due)
            self.due -= taken
            jobs = [claimed(f"job-{self.due + number}") for number in range(taken)]
            found = tuple(Result(job.name, Verdict.APPLIED, job, hold) for job, hold in jobs)
            return Applied(results=found, now=5, next_due=1 if self.due else None)

    class Nothing:
        """Every body is over at once, and so is its claim."""

        def start(self, job: Job, hold: Hold, session: str) -> bool:
            return True

    context = context_of(Falling())
    claimer, finish = claiming(context, attempts_of(context), Nothing()), context.signals.finish
    seen, woken = [], []
    for _ in range(4):
        finish.clear()
        claimer.step(context.runtime.clock.boot())
        seen.append(context.signals.claim.backlog)
        woken.append(finish.is_set())
    assert seen == [True, True, False, False]
    assert woken == [False, False, True, False]


def test_permits_of_a_claim_that_could_not_be_sent_are_looked_at_with_the_next_beat() -> None:
    """Those of the second limit cannot be had: those of the first are of no use, and must not be kept."""
    doubted: list[str] = []

    class Some:
        def take(self, limit: str, wanted: int, session: str) -> list[str]:
            if limit == "two:1":
                raise MemoryError
            return ["one:1#0"]

        def release(self, permits: list[str], session: str) -> None:
            assert not permits

        def doubt(self, permits: Iterable[str]) -> None:
            doubted.extend(permits)

    requirements = Requirements(context_of(None), {}, cast(Permits, Some()), cast(Registrar, None))
    by = Claimant(session="s", node="n1", late_for=1)
    with pytest.raises(MemoryError):
        requirements.equip({"a": Needs(limit="one:1"), "b": Needs(limit="two:1")}, {}, by)
    assert doubted == ["one:1#0"]


def test_permits_of_a_claim_that_is_refused_at_the_gate_are_released() -> None:
    """The reply names no job then, because nothing was written. They used to stay with a node that did not use them."""
    released: list[str] = []

    class Some:
        def release(self, permits: list[str], session: str) -> None:
            released.extend(permits)

        def flush(self) -> None: ...

    requirements = Requirements(context_of(None), {}, cast(Permits, Some()), cast(Registrar, None))
    by = Claimant(session="s", node="n1", late_for=1, permit="one:1#0")
    requirements.use(Applied(results=(), now=5, shut=True), {"a": by}, "s")
    assert released == ["one:1#0"]
