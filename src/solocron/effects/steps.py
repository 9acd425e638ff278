"""The saved steps of a run: each is carried out once per run, and a later attempt reads its result.

The document of the run's steps has a fence of its own, which an attempt raises before it reads: from then on no
earlier attempt, however long it was frozen, can save a result.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from solocron.clock import from_us
from solocron.duration import parse_duration, to_us
from solocron.effects.desk import Desk
from solocron.effects.locks.writing import write
from solocron.effects.results import plain_json
from solocron.errors import InvalidError, StaleFence
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents import steps as model
from solocron.model.documents.steps import Finished
from solocron.stores.contract import Named, Store

__all__ = ["SLEEP", "StepView", "Steps", "steps_of"]

Span = timedelta | int | float | str

SLEEP = "sleep:"
_INTERVAL = 1.0
"""Seconds after which a sleeping body checks whether it must stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """A finished step, for people."""

    name: str
    value: Any
    at: datetime


def steps_of(store: Store, run: str) -> list[StepView]:
    """Return the finished steps of a run, in order."""
    docs = store.read(Named(Kind.STEP, (run,)))
    return [
        StepView(name=name, value=done.value, at=from_us(done.at))
        for doc in docs
        if isinstance(doc, SmallDocument)
        for name, done in model.finished(doc).items()
    ]


class Steps:
    """The steps of one attempt."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._known: dict[str, Finished] | None = None
        self._used: set[str] = set()
        self._sleeps = 0
        self._uncalled: dict[object, str] = {}

    def made(self, step: object, name: str) -> None:
        """Note a step that has still to be called."""
        self._uncalled[step] = name

    def called(self, step: object) -> None:
        """Note that a step is being carried out; a second call changes nothing."""
        self._uncalled.pop(step, None)

    def uncalled(self) -> str | None:
        """Return the name of a step that was made and never called."""
        return next(iter(self._uncalled.values()), None)

    def sleep(self, duration: Span, *, name: str | None = None) -> None:
        """Wait; a later attempt waits only for what is left."""
        self.pause(self._left(duration, name))

    def pause(self, seconds: float) -> None:
        """Wait in short intervals, so that a body that must stop does so soon."""
        clock, until = self.desk.runtime.clock, self.desk.runtime.clock.boot() + seconds
        sleeper = self.desk.runtime.event()
        while True:
            self.desk.check()
            left = until - clock.boot()
            if left <= 0:
                return
            sleeper.wait(min(left, _INTERVAL))

    async def sleep_async(self, duration: Span, *, name: str | None = None) -> None:
        """Wait without blocking the event loop."""
        import asyncio

        from solocron.dispatch.in_thread import in_thread

        clock = self.desk.runtime.clock
        until = clock.boot() + await in_thread(partial(self._left, duration, name))
        while (left := until - clock.boot()) > 0:
            self.desk.check()
            await asyncio.sleep(min(left, _INTERVAL))
        self.desk.check()

    # --- the document --------------------------------------------------------------------------------------------

    def find(self, name: str) -> Finished | None:
        """Return the saved result, if there is one; each name is used once per attempt."""
        if name in self._used:
            raise InvalidError(
                f"step {name!r} was used before in this attempt, and would be given its old result; name each step "
                "differently, for example after the item it is about."
            )
        self._used.add(name)
        return self._entered().get(name)

    def _entered(self) -> dict[str, Finished]:
        known = self._known
        if known is None:
            self.desk.check()
            known = self._write(lambda doc, at: model.enter(doc, fence=self.desk.fence, now=at))[0]
            self._known = known
        return known

    def save(self, name: str, value: Any) -> Any:
        """Save the result of a step and return it as a later attempt will read it."""
        known, kept = self._entered(), plain_json(value, whose=f"step {name!r}")
        total = sum(len(json.dumps(done.value)) for done in known.values()) + len(json.dumps(kept))
        if total > model.TOTAL:
            raise InvalidError(
                f"the results of {self.desk.run} have more than {model.TOTAL} bytes together; that of step {name!r} "
                "was not saved. Keep the data elsewhere and return its name."
            )
        self.desk.runtime.failpoint("step-done")
        known[name], _ = self._write(
            lambda doc, at: model.save(doc, step=name, value=kept, fence=self.desk.fence, now=at)
        )
        self.desk.runtime.failpoint("step-saved")
        return known[name].value

    def _left(self, duration: Span, name: str | None) -> float:
        """Return the seconds until a sleep is over. Its end is a step, saved when it first begins."""
        us = to_us(parse_duration(duration, what="sleep"))
        self._sleeps += 1
        step = f"{SLEEP}{name or self._sleeps}"
        self.find(step)
        saved, now = self._write(
            lambda doc, at: model.save(doc, step=step, value=at + us, fence=self.desk.fence, now=at)
        )
        self._entered()[step] = saved
        left: int = saved.value - now
        return max(left, 0) / 1_000_000

    def _write(self, change: Any) -> tuple[Any, int]:
        """Write once under the session; retry an unavailable store for as long as the lease can be trusted."""
        desk = self.desk
        assert desk.run is not None
        session = desk.take()
        try:
            result, now = write(
                desk.store,
                Kind.STEP,
                desk.run,
                change,
                runtime=desk.runtime,
                session=session,
                ward=desk.ward(),
                check=desk.lease,
                lost=desk.lost,
            )
        finally:
            desk.drop()
        if result.verdict != "applied":
            raise StaleFence(
                f"{desk.run}: fence {desk.fence} is stale, a later attempt has begun its steps; nothing was saved. "
                "Stop: another node runs it."
            )
        return result.answer, now
