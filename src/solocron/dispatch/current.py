"""The run that the present thread or coroutine carries out, as a context variable.

It holds a way to get the run, not the run: many functions take none, and then none is built unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

__all__ = ["current_run", "enter", "entered"]

_current: ContextVar[Callable[[], Any] | None] = ContextVar("solocron_run", default=None)


def current_run() -> Any:
    """Return the run that is carried out here; None outside of runs."""
    run = _current.get()
    return None if run is None else run()


def enter(run: Callable[[], Any]) -> None:
    """Make it the current run of this context for good: that of a task, or of a process of its own."""
    _current.set(run)


def entered(run: Callable[[], Any], body: Callable[[], Any], *, is_async: bool) -> Callable[[], Any]:
    """Return the body with its run as the current one while it is called.

    A coroutine function is entered at once: this is called in the task of the body, whose context ends with it. Threads
    are used again, so on them the run is current only during the call.
    """
    if is_async:
        enter(run)
        return body

    def call() -> Any:
        token = _current.set(run)
        try:
            return body()
        finally:
            _current.reset(token)

    return call
