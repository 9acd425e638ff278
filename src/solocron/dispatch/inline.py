"""Carries calls out where their caller is: on its thread, with its transaction, or on its event loop.

On a thread nothing is carried out by `submit`, which the engine calls while it claims: the caller calls `carry_out`
between two claims. Coroutines run there on an event loop that only this thread uses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from solocron.dispatch.contract import Away, Call, Dispatcher, Interrupt
from solocron.errors import InvalidError
from solocron.jobs.unfinished import awaited

__all__ = ["Ended", "Inline", "Observed"]


class Inline:
    """The calls that wait for the caller's thread."""

    def __init__(self) -> None:
        self._waiting: deque[_WaitingCall] = deque()
        self._loop: Any = None
        self.functions: Dispatcher = _ToTheCaller(self._waiting, on_loop=False)
        self.coroutines: Dispatcher = _ToTheCaller(self._waiting, on_loop=True)

    def carry_out(self) -> bool:
        """Carry out every call that waits, on this thread; return whether there was one.

        A `KeyboardInterrupt` ends its body, and is then raised here: this is the caller's thread.
        """
        found = bool(self._waiting)
        while self._waiting:
            one = self._waiting.popleft()
            error = self._on_loop(one) if one.on_loop else _carry_out(one.call)
            if isinstance(error, KeyboardInterrupt):
                raise error
        return found

    def close(self) -> None:
        """Close the event loop, if a coroutine needed one."""
        loop, self._loop = self._loop, None
        if loop is not None:
            from solocron.dispatch.in_thread import end_threads

            loop.run_until_complete(loop.shutdown_asyncgens())
            end_threads(loop)
            loop.close()

    def _on_loop(self, one: _WaitingCall) -> BaseException | None:
        import asyncio  # a program without coroutine jobs never needs it

        if asyncio._get_running_loop() is not None:
            return _refuse(one.call)
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        task = self._loop.create_task(_await(one.call), name=one.call.name)
        one.cancel = lambda: self._loop.call_soon_threadsafe(task.cancel)
        if one.stopped:
            task.cancel()
        error: BaseException | None
        try:
            error = self._loop.run_until_complete(task)
        except KeyboardInterrupt as interrupted:  # raised inside the loop, not inside the task
            task.cancel()
            self._loop.run_until_complete(task)
            error = interrupted
        return error


class _WaitingCall:
    """A call that waits for the caller's thread, or that this thread carries out."""

    def __init__(self, call: Call, *, on_loop: bool) -> None:
        self.call = call
        self.on_loop = on_loop
        self.stopped = False
        self.cancel: Callable[[], Any] = _nothing

    def interrupt(self) -> None:
        """Cancel the task of a coroutine. A function learns of the stop by `run.cancelled` and `run.check()`."""
        self.stopped = True
        self.cancel()


class _ToTheCaller:
    """One kind of call on its way to the caller's thread."""

    def __init__(self, waiting: deque[_WaitingCall], *, on_loop: bool) -> None:
        self._waiting = waiting
        self._on_loop = on_loop

    def submit(self, call: Call) -> Interrupt:
        one = _WaitingCall(call, on_loop=self._on_loop)
        self._waiting.append(one)
        return one.interrupt

    def close(self) -> None:
        """Do nothing: the caller of `carry_out` closes the loop."""


def _carry_out(call: Call) -> BaseException | None:
    value, error = None, None
    try:
        if not call.begin():
            return None
        value = call.body()()
    except BaseException as raised:  # noqa: BLE001 - whatever a body raises is its outcome
        error = raised
    call.end(value, error)
    return error


async def _await(call: Call) -> BaseException | None:
    value, error = None, None
    try:
        if not call.begin():
            return None
        value = await awaited(call.body()())
    except BaseException as raised:  # noqa: BLE001 - cancellation is an outcome like any other here
        error = raised
    call.end(value, error)
    return error


def _refuse(call: Call) -> BaseException | None:
    """Fail a coroutine on a thread whose event loop runs: a second one cannot run there."""
    error = InvalidError("an event loop runs on this thread, so its coroutine was not called; use `scheduler.aio`.")
    if call.begin():
        call.end(None, error)
    return error


def _nothing() -> None:
    """Do nothing: there is no task yet."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a body returned or raised, as the objects themselves."""

    value: Any
    error: BaseException | None


class Observed:
    """A dispatcher whose calls report how they ended: a record keeps texts, a caller in this process wants objects."""

    def __init__(self, inner: Dispatcher, ended: Callable[[Ended], None]) -> None:
        self._inner = inner
        self._ended = ended
        self._interrupts: list[Interrupt] = []
        self._stopped = False

    def submit(self, call: Call) -> Interrupt:
        interrupt = self._inner.submit(_ObservedCall(call, self._ended))
        self._interrupts.append(interrupt)
        if self._stopped:
            interrupt()
        return interrupt

    def stop(self) -> None:
        """Interrupt every call, those that are still to come too."""
        self._stopped = True
        for interrupt in tuple(self._interrupts):
            interrupt()

    def close(self) -> None:
        self._inner.close()


class _ObservedCall:
    """A call that reports its end before the engine records it."""

    def __init__(self, call: Call, ended: Callable[[Ended], None]) -> None:
        self._call = call
        self._ended = ended
        self.name = call.name
        self.begin = call.begin
        self.body = call.body

    def end(self, value: Any, error: BaseException | None) -> None:
        self._ended(Ended(value, error))
        self._call.end(value, error)

    def away(self) -> Away:
        return self._call.away()
