"""What the engine asks of a dispatcher: carry a call out, and interrupt it where that can be done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Begin", "Dispatcher", "End", "Interrupt"]

Begin = Callable[[], bool]
"""Called on the body's own thread right before it: False means that it must not start any more."""

End = Callable[[Any, BaseException | None], None]
"""Called once, when the body is over: its value, or what it raised. Not called for a body that never began."""

Interrupt = Callable[[], None]
"""Ask the body to stop from outside; what cannot be interrupted (a thread) does nothing here."""


class Dispatcher(Protocol):
    """One way of carrying calls out."""

    def submit(self, body: Callable[[], Any], *, begin: Begin, end: End, name: str) -> Interrupt:
        """Carry `body` out soon; returns at once."""
        ...

    def close(self) -> None:
        """Let go of threads and loops that are idle; bodies that still run are not waited for."""
        ...
