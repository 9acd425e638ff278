"""The contract of dispatchers: carry a call out, and interrupt it where that can be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from solocron.errors import Cancelled, LeaseLost, RunStopped, TimedOut
from solocron.jobs.registry import Handler
from solocron.stores.ward import Ward

__all__ = [
    "NAME",
    "Away",
    "Call",
    "Dispatcher",
    "Elsewhere",
    "Interrupt",
    "LazyDispatcher",
    "LoopBlock",
    "RaisedElsewhere",
    "Stop",
]

NAME = "solocron "
"""Start of the name of a call, before the id of its run: threads and tasks are named like this."""

Interrupt = Callable[[], None]
"""Interrupts a body from outside; does nothing where that is impossible (a thread)."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Reason for a body to stop: `lost`, `timeout`, `cancel` or `shutdown`, with a sentence for people."""

    kind: str
    reason: str

    def error(self, sentence: str) -> RunStopped:
        """Return the exception that a body gets."""
        return _STOPS.get(self.kind, Cancelled)(sentence)


_STOPS: dict[str, type[RunStopped]] = {"lost": LeaseLost, "timeout": TimedOut}


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """A call for a dispatcher that leaves this process: facts that travel, and a way to ask for the rest."""

    handler: Handler
    run: Any
    """The run as a body in this process would get it; its public attributes are its facts."""
    zone: str
    session: str
    scope: str
    memory: int | None
    cpu: int | None
    ward: Ward
    """The ward of the run: its effects are tested and remembered as those of a body in this process."""
    trusted_until: Callable[[], float]
    """Returns the boot time up to which the session of this claim can be trusted; past if it is no longer ours."""
    stopped: Callable[[], Stop | None]
    report: Callable[[dict[str, Any]], None]
    """Takes the progress and the output of the body so far."""
    printed: Callable[[str], None]
    """Takes the output of a body that ran in this process, beside the progress that it has reported."""


@dataclass(frozen=True, slots=True)
class LoopBlock:
    """A span of time in which an event loop did not respond."""

    since: float
    """Boot time at which it was asked."""
    seconds: float
    run: str | None
    """The run that kept it busy; None if that is not known, or was none of ours."""
    over: bool

    @property
    def job(self) -> str | None:
        return None if self.run is None else self.run.rpartition("@")[0]


class Call(Protocol):
    """One body to carry out, in this process or, by `away`, in another."""

    @property
    def name(self) -> str: ...

    def begin(self) -> bool:
        """Return False if the body must not start any more. Called on the body's own thread right before it."""
        ...

    def body(self) -> Callable[[], Any]:
        """Return the function to call, after `begin` has agreed; what this raises counts as raised by the body."""
        ...

    def end(self, value: Any, error: BaseException | None) -> None:
        """Record value or exception of a body that is over. Called once, and not for a body that never began."""
        ...

    def away(self) -> Away:
        """Describe the call for a dispatcher that leaves this process."""
        ...


class Elsewhere(Exception):
    """A body failed in another process; the message says how."""


class RaisedElsewhere(Elsewhere):
    """A body raised in another process; the message is the traceback there, which logs show as that of a thread."""


class Dispatcher(Protocol):
    """One way of carrying calls out."""

    def submit(self, call: Call) -> Interrupt:
        """Carry the call out soon; returns at once."""
        ...

    def close(self) -> None:
        """Release idle threads and loops; bodies that still run are not waited for."""
        ...


class LazyDispatcher:
    """A dispatcher that is made when first needed, so that a program pays only for those that its jobs use."""

    def __init__(self, make: Callable[[], Dispatcher]) -> None:
        self._make = make
        self._made: Dispatcher | None = None

    def submit(self, call: Call) -> Interrupt:
        if self._made is None:
            self._made = self._make()
        return self._made.submit(call)

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
