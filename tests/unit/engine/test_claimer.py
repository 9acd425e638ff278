"""A claim is started once, however slowly the node gets round to it after the store has answered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pytest

from solocron.engine.attempts import Board
from solocron.engine.claimer import Claimer
from solocron.engine.memory import Memory
from solocron.engine.permits import Permits
from solocron.engine.recovery import Recovery
from solocron.engine.runner import Runner
from solocron.engine.settings import Settings
from solocron.events import Events
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Origin
from solocron.model.timetable import EMPTY
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import Needs
from solocron.runtime import Threads
from solocron.stores.contract import Applied, ChangeFn, Due, Gate, Result, Store, Verdict

SETTINGS = Settings.make(
    node="n1", host="h", pid=1, pools=("default",), lease="15s", beat=None, max_running=8, keep="30d", revision=None,
    version="",
)  # fmt: skip


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
    """A store that grants the same batch to whoever asks."""

    def __init__(self, batch: list[tuple[Job, Hold]]) -> None:
        self._batch = batch

    def update(self, which: Due, change: ChangeFn, **_: Any) -> Applied:
        return Applied(results=tuple(Result(j.name, Verdict.APPLIED, j, hold) for j, hold in self._batch), now=1)


class Open:
    """A namespace that is open and stays so."""

    epoch = ""

    def may_claim(self) -> bool:
        return True

    def gate(self) -> Gate:
        return Gate(0, ("open",))


def claiming(board: Board, runtime: Threads, store: object, runner: object) -> Claimer:
    return Claimer(
        store=cast(Store, store), board=board, runtime=runtime, settings=SETTINGS, events=Events(),
        handlers={}, resolve=lambda spec: EMPTY, runner=cast(Runner, runner),
        permits=cast(Permits, None), recovery=cast(Recovery, Open()), memory=Memory(runtime), wake_keeper=lambda: None,
    )  # fmt: skip


def test_i2_a_claim_that_was_answered_and_not_yet_started_is_not_adopted() -> None:
    """While the first of a batch is started, the keeper looks: the others are in the store and not on the board yet.

    It took them for claims whose answer was lost, ran them, and the claimer ran them again.
    """
    batch = [claimed("one"), claimed("two")]
    runtime = Threads()
    board = Board(runtime, SETTINGS)
    board.hold_session("s", runtime.clock.boot())
    adopted: list[str] = []

    class Slow:
        """Takes its time to start a body, so that the keeper comes in between."""

        def start(self, job: Job, hold: Hold, session: str) -> bool:
            adopted.extend(hold.run for _, hold in board.unknown(batch))
            return board.add(job, hold, session) is not None

    claimer = claiming(board, runtime, Granting(batch), Slow())
    claimer.step(runtime.clock.boot())
    assert adopted == []
    assert {running.hold.run for running in board.running()} == {"one@1", "two@1"}


def test_i2_a_claim_that_has_ended_is_not_started_again() -> None:
    runtime = Threads()
    board = Board(runtime, SETTINGS)
    board.hold_session("s", runtime.clock.boot())
    job, hold = claimed("one")
    running = board.add(job, hold, "s")
    assert running is not None
    assert board.add(job, hold, "s") is None, "it is under way"
    board.body_ended(running)
    board.done([running])
    assert board.add(job, hold, "s") is None, "it is over"


def test_the_end_of_a_flood_is_told_once() -> None:
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

    runtime = Threads()
    board = Board(runtime, SETTINGS)
    board.hold_session("s", runtime.clock.boot())
    claimer, told = claiming(board, runtime, Falling(), Nothing()), []
    claimer.calmed = lambda: told.append(claimer.flooded)
    seen = []
    for _ in range(4):
        claimer.step(runtime.clock.boot())
        seen.append(claimer.flooded)
    assert seen == [True, True, False, False]
    assert told == [False]


def test_permits_of_a_claim_that_could_not_be_sent_are_looked_at_with_the_next_beat() -> None:
    """Those of the second limit cannot be had: those of the first are in nobody's hands, and must not stay there."""
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

    runtime = Threads()
    claimer = claiming(Board(runtime, SETTINGS), runtime, None, None)
    claimer._permits = cast(Permits, Some())
    by = Claimant(session="s", node="n1", late_for=1)
    with pytest.raises(MemoryError):
        claimer._equipped({"a": Needs(limit="one:1"), "b": Needs(limit="two:1")}, {}, by)
    assert doubted == ["one:1#0"]
