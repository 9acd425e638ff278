"""Carries calls out on daemon threads that are kept for reuse. A body that never ends costs its thread, no more.

A call waits in a queue only until a thread that was woken for it gets the processor. A thread that takes a call while
others wait wakes the next thread before it begins, so that a body that blocks delays no other. A thread whose body was
short takes the next call itself, so that a burst of short bodies does not cost a thread switch for each.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue

from solocron.dispatch.contract import Call, Interrupt

__all__ = ["ThreadDispatcher"]

log = logging.getLogger("solocron")

_IDLE_SECONDS = 10.0


class ThreadDispatcher:
    """At most as many threads as bodies run at once; the engine's free capacity is the bound."""

    def __init__(self, retire: Callable[[], None] | None = None) -> None:
        self._retire = retire
        self._calls: deque[Call] = deque()
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._mutex = threading.Lock()
        self._idle = 0
        self._coming = 0
        """Threads that were woken or started and have not looked for a call yet.

        While calls wait, there is at least one.
        """
        self._closed = False

    def submit(self, call: Call) -> Interrupt:
        with self._mutex:
            self._calls.append(call)
            grow = self._call_for_one()
        if grow and not self._grow():
            with self._mutex:
                if call in self._calls:  # else a busy thread has taken it meanwhile
                    self._calls.remove(call)
                    raise RuntimeError("this machine has no more threads")
        return _nothing

    def close(self) -> None:
        """End idle threads. Busy ones end after their work; submitted calls are still carried out."""
        with self._mutex:
            self._closed = True
            idle, self._idle = self._idle, 0
            self._coming += idle
        for _ in range(idle):
            self._wakes.put(None)

    def _call_for_one(self) -> bool:
        """Wake a thread unless one is on its way; True if there is none to wake. The mutex is held."""
        if self._coming:
            return False
        self._coming += 1
        if not self._idle:
            return True
        self._idle -= 1
        self._wakes.put(None)
        return False

    def _grow(self) -> bool:
        """Start one more thread; False if the machine refuses."""
        try:
            threading.Thread(target=self._work, name="solocron-body", daemon=True).start()
        except Exception:  # noqa: BLE001 - no more threads, or no memory for one
            with self._mutex:
                self._coming -= 1
            return False
        return True

    def _work(self) -> None:
        """Carry calls out until there are none for a while."""
        self._carry_out_calls()
        if self._retire is not None:
            try:
                self._retire()
            except Exception:
                log.exception("a thread of jobs could not close what it had open", extra={"event": "thread ended"})

    def _carry_out_calls(self) -> None:
        came = True
        while True:
            with self._mutex:
                self._coming -= came
                call = self._calls.popleft() if self._calls else None
                grow = bool(self._calls) and self._call_for_one()
                if call is None:
                    if self._closed:
                        return
                    self._idle += 1
            if grow:
                self._grow()  # if it cannot, this thread takes what waits after its own call
            came = call is None
            if call is not None:
                _carry_out(call)
            elif not self._is_called():
                return

    def _is_called(self) -> bool:
        """Wait to be woken; False after a timeout."""
        try:
            self._wakes.get(timeout=_IDLE_SECONDS)
        except Empty:
            with self._mutex:
                if self._idle > 0:
                    self._idle -= 1
                    return False
            # Another thread counted on this one at the last moment: the wake-up is on its way.
            self._wakes.get()
        return True


def _carry_out(call: Call) -> None:
    value, error = None, None
    try:
        if not call.begin():
            return
        value = call.body()()
    except BaseException as raised:  # noqa: BLE001 - whatever a body raises is its outcome, SystemExit included
        error = raised
    call.end(value, error)


def _nothing() -> None:
    """Do nothing: a thread cannot be interrupted. Its body learns of the stop by `run.cancelled` and `run.check()`."""
