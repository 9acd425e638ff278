"""Carries each call out in a child process, supervised by a thread of this one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from solocron.dispatch.contract import Away, Call, Interrupt, RaisedElsewhere
from solocron.dispatch.process.child import Child
from solocron.dispatch.process.order import Home, order_of
from solocron.dispatch.thread import ThreadDispatcher

__all__ = ["ProcessDispatcher"]


class ProcessDispatcher:
    """One child per call, each supervised by a thread of its own."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._threads = ThreadDispatcher()
        self._mutex = threading.Lock()
        self._children: set[Child] = set()

    def submit(self, call: Call) -> Interrupt:
        away = call.away()
        order = order_of(away, self._home)  # raises here, before anything has begun, for what cannot be sent
        child = Child(away, order, patience=min(1.0, self._home.lease / 10))
        self._threads.submit(_Errand(call, lambda: self._carry_out(child, away)))
        return child.interrupt

    def _carry_out(self, child: Child, away: Away) -> Any:
        with self._mutex:
            self._children.add(child)
        try:
            return child.carry_out(self._home.trace(away.run))
        finally:
            with self._mutex:
                self._children.discard(child)

    def close(self) -> None:
        """Kill the children that are left: nothing of a node that has drained goes on."""
        with self._mutex:
            children = list(self._children)
        for child in children:
            child.kill()
        self._threads.close()


@dataclass(frozen=True, slots=True, eq=False)
class _Errand:
    """The call as its thread in this process sees it: its body supervises the child."""

    call: Call
    look_after: Callable[[], Any]

    @property
    def name(self) -> str:
        return self.call.name

    def begin(self) -> bool:
        return self.call.begin()

    def body(self) -> Callable[[], Any]:
        return self.look_after

    def end(self, value: Any, error: BaseException | None) -> None:
        # The frames of the thread here say nothing of the body: its own traceback is the message.
        self.call.end(value, error.with_traceback(None) if isinstance(error, RaisedElsewhere) else error)

    def away(self) -> Away:
        return self.call.away()
