"""Outcomes that pile up hold claims back, and recording them lets claims go on."""

from __future__ import annotations

from typing import Any, cast

from solocron.engine.board import Board
from solocron.engine.finisher import Finisher
from solocron.engine.permits import Permits
from solocron.engine.settings import Settings
from solocron.events import Events
from solocron.model.definition import Definition
from solocron.model.ending import Outcome
from solocron.model.job import Hold, Job
from solocron.model.run import Origin
from solocron.model.timetable import EMPTY
from solocron.runtime import Threads
from solocron.stores.contract import Applied, ChangeFn, Named, Result, Store, Verdict

SETTINGS = Settings.make(
    node="n1", host="h", pid=1, pools=("default",), lease="15s", beat=None, max_running=1, keep="30d", revision=None,
    version="",
)  # fmt: skip


class Refusing:
    """A store that declines every change; what happens is noted in its order."""

    def __init__(self, seen: list[str]) -> None:
        self._seen = seen

    def update(self, which: Named, change: ChangeFn, **_: Any) -> Applied:
        self._seen.append("written")
        return Applied(results=tuple(Result(name, Verdict.DECLINED) for name in which.names), now=1)


def test_claims_that_outcomes_held_back_go_on_once_these_are_written() -> None:
    """No body may be left whose end would wake the claimer, which else sleeps until its next poll."""
    seen: list[str] = []
    runtime = Threads()
    board = Board(runtime, SETTINGS)
    finisher = Finisher(
        store=cast(Store, Refusing(seen)), board=board, runtime=runtime, settings=SETTINGS, events=Events(),
        resolve=lambda spec: EMPTY, wake_claimer=lambda due: seen.append("a place is free" if due is None else "due"),
        permits=Permits(store=cast(Store, Refusing(seen)), runtime=runtime, node="n"),
    )  # fmt: skip
    board.hold_session("s", runtime.clock.boot())
    job = Job(name="j", incarnation=1, definition=Definition(handler="h", schedule=None), cursor=0)
    hold = Hold(
        run="j@1", slot=1, origin=Origin.SCHEDULE, attempt=1, tries=0, session="s", node="n1", fence=1, claimed_at=1
    )
    running = board.add(job, hold, "s")
    assert running is not None
    finisher.add(running, Outcome.succeeded())
    seen.clear()
    finisher.step(runtime.clock.boot())
    assert seen == ["written", "a place is free"]
