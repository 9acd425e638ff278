"""The run that the present thread or coroutine carries out, as a context variable.

It holds a way to get the run, not the run: many functions take none, and then none is built unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

__all__ = ["carrying_out", "current_run", "enter"]

_current: ContextVar[Callable[[], Any] | None] = ContextVar("solocron_run", default=None)


def current_run() -> Any:
    """Return the run that is carried out here; None outside of runs."""
    run = _current.get()
    return None if run is None else run()


def enter(run: Callable[[], Any]) -> None:
    """Make it the current run of this context for good: that of a task, or of a process of its own."""
    _current.set(run)


def carrying_out(run: Callable[[], Any], body: Callable[[], Any]) -> Callable[[], Any]:
    """Return the body with its run as the current one while it is called: threads are used again."""

    def call() -> Any:
        token = _current.set(run)
        try:
            return body()
        finally:
            _current.reset(token)

    return call
