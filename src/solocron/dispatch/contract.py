"""What the engine asks of a dispatcher: carry a call out, and interrupt it where that can be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from solocron.errors import Cancelled, LeaseLost, RunStopped, TimedOut
from solocron.jobs.registry import Handler

__all__ = ["Away", "Call", "Dispatcher", "Elsewhere", "Interrupt", "Stop"]

Interrupt = Callable[[], None]
"""Ask the body to stop from outside; what cannot be interrupted (a thread) does nothing here."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a body must stop: `lost`, `timeout`, `cancel` or `shutdown`, and the sentence for people."""

    kind: str
    reason: str

    def error(self, sentence: str) -> RunStopped:
        """Return what a body sees of it."""
        return _STOPS.get(self.kind, Cancelled)(sentence)


_STOPS: dict[str, type[RunStopped]] = {"lost": LeaseLost, "timeout": TimedOut}


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """What a dispatcher must know to carry a call out away from this process: facts that travel, and a way to ask."""

    handler: Handler
    run: Any
    """The run as a body here would get it; its public attributes are its facts."""
    zone: str
    session: str
    scope: str
    memory: int | None
    cpu: int | None
    trusted_until: Callable[[], float]
    """Boot time up to which the session of this claim can be trusted; in the past when it is not ours any more."""
    stopped: Callable[[], Stop | None]
    report: Callable[[dict[str, Any]], None]
    """Takes what the body has told of itself so far: its progress, its output."""


class Call(Protocol):
    """One body to carry out, in this process or, by `away`, in another."""

    @property
    def name(self) -> str: ...

    def begin(self) -> bool:
        """Called on the body's own thread right before it: False means that it must not start any more."""
        ...

    def body(self) -> Callable[[], Any]:
        """What to call, made after `begin` has agreed; what this raises is what the body raised."""
        ...

    def end(self, value: Any, error: BaseException | None) -> None:
        """Called once, when the body is over: its value, or what it raised. Not called for one that never began."""
        ...

    def away(self) -> Away:
        """The same for a dispatcher that leaves this process."""
        ...


class Elsewhere(Exception):
    """A body failed in another process; the message is what is to be kept of it, its traceback there included."""


class Dispatcher(Protocol):
    """One way of carrying calls out."""

    def submit(self, call: Call) -> Interrupt:
        """Carry the call out soon; returns at once."""
        ...

    def close(self) -> None:
        """Let go of threads and loops that are idle; bodies that still run are not waited for."""
        ...
