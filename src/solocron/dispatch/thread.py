"""Carries calls out on daemon threads that are kept for reuse. A body that never ends costs its thread, no more."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from solocron.dispatch.contract import Begin, End, Interrupt

__all__ = ["ThreadDispatcher"]

_IDLE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Call:
    body: Callable[[], Any]
    begin: Begin
    end: End
    name: str


class ThreadDispatcher:
    """As many threads as bodies run at once; the engine's free capacity is the bound."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._mutex = threading.Lock()
        self._idle = 0
        self._threads = 0
        self._closed = False

    def submit(self, body: Callable[[], Any], *, begin: Begin, end: End, name: str) -> Interrupt:
        call = _Call(body, begin, end, name)
        with self._mutex:
            if self._idle > 0:
                self._idle -= 1
                grow = False
            else:
                self._threads += 1
                grow = True
        if grow:
            threading.Thread(target=self._work, args=(call,), name="solocron-body", daemon=True).start()
        else:
            self._calls.put(call)
        return _nothing

    def close(self) -> None:
        with self._mutex:
            self._closed = True
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._calls.put(None)

    def _work(self, call: _Call | None) -> None:
        while call is not None:
            _carry_out(call)
            call = self._next()
        with self._mutex:
            self._threads -= 1

    def _next(self) -> _Call | None:
        with self._mutex:
            if self._closed:
                return None
            self._idle += 1
        try:
            return self._calls.get(timeout=_IDLE_SECONDS)
        except Empty:
            with self._mutex:
                if self._idle > 0:
                    self._idle -= 1
                    return None
            # Someone counted on this thread at the last moment: the call is on its way.
            return self._calls.get()


def _carry_out(call: _Call) -> None:
    if not call.begin():
        return
    value, error = None, None
    try:
        value = call.body()
    except BaseException as raised:  # noqa: BLE001 - whatever a body raises is its outcome, SystemExit included
        error = raised
    call.end(value, error)


def _nothing() -> None:
    """A thread cannot be interrupted; its run is told through `run.cancelled` and `run.check()`."""
