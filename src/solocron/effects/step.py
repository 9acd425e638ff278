"""One step of a run: `run.step("charge", retries=2).call(charge, customer, amount=5)`.

The options belong to the step and the arguments of `call` to the function, so neither takes a keyword from the other.
"""

from __future__ import annotations

import contextvars
import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any, NoReturn, ParamSpec, TypeVar, cast, overload

from solocron.duration import parse_duration
from solocron.effects.locks.writing import check_text
from solocron.effects.results import close
from solocron.effects.steps import SLEEP, Steps
from solocron.errors import InvalidError, NotEntered, WaitTimeout
from solocron.model.policy import Backoff, whole
from solocron.spans import span

__all__ = ["AsyncStep", "Step"]

P = ParamSpec("P")
T = TypeVar("T")
Span = timedelta | int | float | str


class _Options:
    """The name and the options of a step, checked when it is made."""

    def __init__(
        self, steps: Steps, name: str, *, retries: int = 0, timeout: Span | None = None, backoff: Backoff | None = None
    ) -> None:
        check_text(name, "step", untouched="Nothing was run.")
        if name.startswith(SLEEP):
            raise InvalidError(f"step {name!r}: names that begin with {SLEEP!r} are kept for sleeps. Nothing was run.")
        if not whole(retries) or retries < 0:
            raise InvalidError(f"step {name!r}: retries={retries!r}; give a whole number from 0 up. Nothing was run.")
        self.name = name
        self._steps = steps
        self._retries = retries
        self._limit = (
            None if timeout is None else parse_duration(timeout, what=f"step {name!r}: timeout").total_seconds()
        )
        self._backoff = backoff or Backoff()
        steps.made(self, name)

    def __bool__(self) -> NoReturn:
        raise NotEntered(
            f"step {self.name!r} was used as a truth value before it was called. Nothing was run; write "
            "`run.step(...).call(function, ...)` (in a coroutine `await`)."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, not called yet>"

    def _begin(self, function: Any) -> None:
        """Count the step as called, and refuse what is not a function."""
        self._steps.called(self)
        if not callable(function):
            raise InvalidError(
                f"step {self.name!r}: {function!r:.60} cannot be called; pass a function and its arguments."
            )

    def _delay(self, tries: int) -> float:
        """Return the seconds before the next try."""
        return self._backoff.delay(tries, f"{self._steps.desk.run}/{self.name}") / 1_000_000


class Step(_Options):
    """A step of a plain function."""

    def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the saved result, or call the function and save what it returns, as JSON gives it back."""
        self._begin(function)
        with span(f"step {self.name}", {"solocron.step.name": self.name}) as note:
            done = self._steps.find(self.name)
            note("solocron.step.saved", done is not None)
            return cast("T", self._carry_out(partial(function, *args, **kwargs)) if done is None else done.value)

    def _carry_out(self, call: Callable[[], Any]) -> Any:
        """Call the function, again if that fails and it may, and save its result."""
        value: Any = None
        tries = 0
        while True:
            self._steps.desk.check()
            try:
                value = call() if self._limit is None else self._within(self._limit, call)
                break
            except WaitTimeout:
                raise
            except Exception:
                tries += 1
                if tries > self._retries:
                    raise
            self._steps.pause(self._delay(tries))
        if inspect.isawaitable(value):
            close(value)
            raise InvalidError(f"step {self.name!r} is a coroutine; await it in a coroutine job. Nothing was saved.")
        return self._steps.save(self.name, value)

    def _within(self, limit: float, call: Callable[[], Any]) -> Any:
        """Call on a thread of its own. After the timeout a plain function continues, but its result is not saved."""
        runtime = self._steps.desk.runtime
        done = runtime.event()
        box: list[tuple[Any, BaseException | None]] = []
        context = contextvars.copy_context()

        def body() -> None:
            try:
                box.append((context.run(call), None))
            except BaseException as error:  # noqa: BLE001 - raised again on the waiting thread
                box.append((None, error))
            done.set()

        runtime.spawn(body, f"solocron step {self.name}")
        if not done.wait(limit):
            raise WaitTimeout(
                f"step {self.name!r} still runs after {limit:g} s; its result will not be saved, and it is not tried "
                "again in this attempt, because it may still do its work."
            )
        value, error = box[0]
        if error is not None:
            raise error
        return value


class AsyncStep(_Options):
    """A step of a coroutine: its timeout cancels the function, which may then be tried again."""

    @overload
    async def call(self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T: ...

    @overload
    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Return the saved result, or await the function and save what it returns, as JSON gives it back."""
        from solocron.dispatch.in_thread import in_thread

        self._begin(function)
        with span(f"step {self.name}", {"solocron.step.name": self.name}) as note:
            done = await in_thread(partial(self._steps.find, self.name))
            note("solocron.step.saved", done is not None)
            return await self._carry_out(partial(function, *args, **kwargs)) if done is None else done.value

    async def _carry_out(self, call: Callable[[], Any]) -> Any:
        """Await the function, again if that fails and it may, and save its result."""
        import asyncio

        from solocron.dispatch.in_thread import in_thread

        tries, value = 0, None
        while True:
            self._steps.desk.check()
            try:
                value = call()
                if inspect.isawaitable(value):
                    value = await asyncio.wait_for(value, self._limit)
                elif self._limit is not None:
                    raise InvalidError(f"step {self.name!r}: timeout= needs a coroutine function in a coroutine job.")
                break
            except InvalidError:
                raise
            except Exception:
                tries += 1
                if tries > self._retries:
                    raise
            await asyncio.sleep(self._delay(tries))
        return await in_thread(partial(self._steps.save, self.name, value))
