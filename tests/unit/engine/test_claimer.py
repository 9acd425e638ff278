"""A claim is started once, however slowly the node gets round to it after the store has answered."""

from __future__ import annotations

from typing import Any, cast

from solocron.engine.board import Board
from solocron.engine.claimer import Claimer
from solocron.engine.permits import Permits
from solocron.engine.runner import Runner
from solocron.engine.settings import Settings
from solocron.events import Events
from solocron.model.definition import Definition
from solocron.model.job import Hold, Job
from solocron.model.run import Origin
from solocron.model.timetable import EMPTY
from solocron.runtime import Threads
from solocron.stores.contract import Applied, ChangeFn, Due, Result, Store, Verdict

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

    claimer = Claimer(
        store=cast(Store, Granting(batch)), board=board, runtime=runtime, settings=SETTINGS, events=Events(),
        handlers={}, resolve=lambda spec: EMPTY, runner=cast(Runner, Slow()),
        permits=cast(Permits, None), lost=lambda reason: None,
    )  # fmt: skip
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
