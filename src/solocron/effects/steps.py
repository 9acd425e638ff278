"""Steps of a run whose results survive a crash: each is carried out once per run, and its result replayed afterwards.

The document of the run's steps has a fence of its own, which an attempt raises before it reads: from then on no
earlier attempt, however long it was frozen, can save a result.
"""

from __future__ import annotations

import contextvars
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from solocron.clock import from_us
from solocron.duration import parse_duration, to_us
from solocron.effects.desk import Desk
from solocron.effects.locks.writing import check_text, write
from solocron.effects.results import close, plain_json
from solocron.errors import InvalidError, StaleFence, WaitTimeout
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents import steps as model
from solocron.model.documents.steps import Finished
from solocron.model.policy import Backoff, whole
from solocron.stores.contract import Named, Store

__all__ = ["StepView", "Steps", "steps_of"]

Span = timedelta | int | float | str

_SLEEP = "sleep:"
_SLICE = 1.0
"""Seconds after which a sleeping body looks whether it must stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """A finished step as people see it."""

    name: str
    value: Any
    at: datetime


def steps_of(store: Store, run: str) -> list[StepView]:
    """The finished steps of a run, in order."""
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
        self._desk = desk
        self._known: dict[str, Finished] | None = None
        self._used: set[str] = set()
        self._sleeps = 0

    # --- plain functions -----------------------------------------------------------------------------------------

    def step(
        self, name: str, function: Callable[..., Any], /, *args: Any, retries: int = 0, timeout: Span | None = None,
        backoff: Backoff | None = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """The saved result, or the function's, saved."""
        limit, pauses = _checked(name, function, retries, timeout, backoff)
        done = self._find(name)
        if done is not None:
            return done.value
        call, tries, value = partial(function, *args, **kwargs), 0, None
        while True:
            self._desk.check()
            try:
                value = call() if limit is None else self._within(limit, name, call)
                break
            except WaitTimeout:
                raise
            except Exception:
                tries += 1
                if tries > retries:
                    raise
            self._pause(pauses.delay(tries, f"{self._desk.run}/{name}") / 1_000_000)
        if inspect.isawaitable(value):
            close(value)
            raise InvalidError(f"step {name!r} is a coroutine; await it in a coroutine job. Nothing was saved.")
        return self._save(name, value)

    def sleep(self, duration: Span, *, name: str | None = None) -> None:
        """Wait; a later attempt waits only for what is left."""
        self._pause(self._left(duration, name))

    def _within(self, limit: float, name: str, call: Callable[[], Any]) -> Any:
        """A plain function cannot be stopped from outside: after its time it goes on, but its result is not saved."""
        done = self._desk.runtime.event()
        box: list[tuple[Any, BaseException | None]] = []
        context = contextvars.copy_context()

        def body() -> None:
            try:
                box.append((context.run(call), None))
            except BaseException as error:  # noqa: BLE001 - handed to the waiting thread
                box.append((None, error))
            done.set()

        self._desk.runtime.spawn(body, f"solocron step {name}")
        if not done.wait(limit):
            raise WaitTimeout(
                f"step {name!r} still runs after {limit:g} s; its result will not be saved, and it is not tried again "
                "in this attempt, because it may still do its work."
            )
        value, error = box[0]
        if error is not None:
            raise error
        return value

    def _pause(self, seconds: float) -> None:
        """Wait in short intervals, so that a body that must stop does so soon."""
        clock, until = self._desk.runtime.clock, self._desk.runtime.clock.boot() + seconds
        sleeper = self._desk.runtime.event()
        while True:
            self._desk.check()
            left = until - clock.boot()
            if left <= 0:
                return
            sleeper.wait(min(left, _SLICE))

    # --- coroutines ----------------------------------------------------------------------------------------------

    async def step_async(
        self, name: str, function: Callable[..., Any], /, *args: Any, retries: int = 0, timeout: Span | None = None,
        backoff: Backoff | None = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """The same for coroutines: `timeout` cancels them, and then they may be tried again."""
        import asyncio

        from solocron.effects.locks.aio import in_thread

        limit, pauses = _checked(name, function, retries, timeout, backoff)
        done = await in_thread(partial(self._find, name))
        if done is not None:
            return done.value
        tries, value = 0, None
        while True:
            self._desk.check()
            try:
                value = function(*args, **kwargs)
                if inspect.isawaitable(value):
                    value = await asyncio.wait_for(value, limit)
                elif limit is not None:
                    raise InvalidError(f"step {name!r}: timeout= needs a coroutine function in a coroutine job.")
                break
            except InvalidError:
                raise
            except Exception:
                tries += 1
                if tries > retries:
                    raise
            await asyncio.sleep(pauses.delay(tries, f"{self._desk.run}/{name}") / 1_000_000)
        return await in_thread(partial(self._save, name, value))

    async def sleep_async(self, duration: Span, *, name: str | None = None) -> None:
        import asyncio

        from solocron.effects.locks.aio import in_thread

        clock = self._desk.runtime.clock
        until = clock.boot() + await in_thread(partial(self._left, duration, name))
        while (left := until - clock.boot()) > 0:
            self._desk.check()
            await asyncio.sleep(min(left, _SLICE))
        self._desk.check()

    # --- the document --------------------------------------------------------------------------------------------

    def _find(self, name: str) -> Finished | None:
        """The saved result, if there is one; each name is used once per attempt."""
        if name in self._used:
            raise InvalidError(
                f"step {name!r} was used before in this attempt, and would be given its old result; name each step "
                "differently, for example after the item it is about."
            )
        self._used.add(name)
        return self._entered().get(name)

    def _entered(self) -> dict[str, Finished]:
        if self._known is None:
            self._desk.check()
            self._known = self._write(lambda doc, at: model.enter(doc, fence=self._desk.fence, now=at))[0]
        return self._known

    def _save(self, name: str, value: Any) -> Any:
        known, kept = self._entered(), plain_json(value, whose=f"step {name!r}")
        total = sum(len(json.dumps(done.value)) for done in known.values()) + len(json.dumps(kept))
        if total > model.TOTAL:
            raise InvalidError(
                f"the results of {self._desk.run} have more than {model.TOTAL} bytes together; that of step {name!r} "
                "was not saved. Keep the data elsewhere and return its name."
            )
        self._desk.runtime.failpoint("step-done")
        known[name], _ = self._write(
            lambda doc, at: model.save(doc, step=name, value=kept, fence=self._desk.fence, now=at)
        )
        self._desk.runtime.failpoint("step-saved")
        return known[name].value

    def _left(self, duration: Span, name: str | None) -> float:
        """Seconds until a sleep is over: its end is a step, saved when it first begins."""
        us = to_us(parse_duration(duration, what="sleep"))
        self._sleeps += 1
        step = f"{_SLEEP}{name or self._sleeps}"
        self._find(step)
        saved, now = self._write(
            lambda doc, at: model.save(doc, step=step, value=at + us, fence=self._desk.fence, now=at)
        )
        self._entered()[step] = saved
        left: int = saved.value - now
        return max(left, 0) / 1_000_000

    def _write(self, change: Any) -> tuple[Any, int]:
        """One write under the session; a store that is away is tried for as long as the lease can be trusted."""
        desk = self._desk
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


def _checked(
    name: str, function: Any, retries: int, timeout: Span | None, backoff: Backoff | None
) -> tuple[float | None, Backoff]:
    check_text(name, "step", untouched="Nothing was run.")
    if name.startswith(_SLEEP):
        raise InvalidError(f"step {name!r}: names that begin with {_SLEEP!r} are kept for sleeps. Nothing was run.")
    if not callable(function):
        raise InvalidError(f"step {name!r}: {function!r:.60} cannot be called; hand over a function and its arguments.")
    if not whole(retries) or retries < 0:
        raise InvalidError(f"step {name!r}: retries={retries!r}; give a whole number from 0 up. Nothing was run.")
    limit = None if timeout is None else parse_duration(timeout, what=f"step {name!r}: timeout").total_seconds()
    return limit, backoff or Backoff()
