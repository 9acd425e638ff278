"""`current_run()`: the run that the calling code is part of, without passing it through every function."""

from __future__ import annotations

from solocron.dispatch import current
from solocron.runs.async_run import AsyncRun
from solocron.runs.run import Run

__all__ = ["current_run"]


def current_run() -> Run | AsyncRun | None:
    """Return the run that is carried out on this thread, in this coroutine or process; None outside of runs.

    A thread that a body starts has a context of its own: start it with `contextvars.copy_context().run`, or with
    `asyncio.to_thread`, which does so.
    """
    found: Run | AsyncRun | None = current.current_run()
    return found
