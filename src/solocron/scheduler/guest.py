"""A guest: a process that runs bodies only for messages. It has a session and no claimer, sweeper or registrar.

It begins with the first message of a process, anew after a fork, and ends when nothing has come for two leases: as long
as a node remembers what it has run, in case the store goes back. An idle worker costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from solocron.dispatch.carrier import Message
from solocron.dispatch.contract import NAME, Call, Dispatcher, Interrupt
from solocron.engine.node import Node
from solocron.errors import ConfigurationError, SolocronError
from solocron.events import Event
from solocron.model.documents.job import Hold
from solocron.model.transitions.offering import Dropped, NotPickedUp
from solocron.runtime import Flag
from solocron.scheduler.core import Core
from solocron.scheduler.inline import Here

__all__ = ["Guest"]

_ENDS = ("finished", "refused", "handed back", "session lost")
_COPY = "this process is carrying the run out already"
_REMEDIES = {
    Dropped.STALE: "nothing for a copy; if there are many, raise pickup= above the time that messages wait; what is no "
    "copy was not sent by a node",
    Dropped.NO_JOB: "look whether this worker has the store of the nodes, and what else writes to the queue",
}
"""What to do about a message that should not have come. The other ones wait, or are told elsewhere."""
IDLE_LEASES = 2
_LOOK = 0.02
"""Seconds between two looks whether a place is free."""


class _Place(NamedTuple):
    """Where the caller waits that has the message of an attempt."""

    attempt: int
    here: Here


class _ToThePlace:
    """Takes each call to the place of the caller that has its message."""

    def __init__(self, kind: str, places: dict[str, _Place]) -> None:
        self._kind = kind
        self._places = places

    def submit(self, call: Call) -> Interrupt:
        return self._places[call.name].here.dispatchers[self._kind].submit(call)

    def close(self) -> None:
        """Do nothing: each caller closes its own place."""


class Guest:
    """The session of a process that gets messages, and what it carries out under it."""

    def __init__(self, core: Core, make: Callable[[dict[str, Dispatcher]], Node]) -> None:
        self._core = core
        self._make = make
        self._mutex = core.runtime.mutex()
        self._process = core.runtime.process()
        self._node: Node | None = None
        self._begins: Flag | None = None
        """Set once the first message of the process has begun a session; the others wait for it."""
        self._places: dict[str, _Place] = {}
        """By the name of the run's call: one attempt of a run at a time."""
        self._busy = 0
        self._last = 0.0
        """Boot time at which the last message was done with."""
        self._rests = False
        self._wake = core.runtime.event()

    @property
    def node(self) -> Node | None:
        return self._node

    def carry_out(self, message: Message, here: Here | None) -> Hold | None:
        """Pick the run of a message up and carry it out; return when its outcome is in the store. None: dropped."""
        events, name = self._core.events, f"{NAME}{message.run}"
        node = self._enter()
        try:
            if not self._take_place(name, message.attempt, here):
                self._drop(message, _COPY)
                return None
            over = self._core.runtime.event()

            def look(event: Event) -> None:
                over.set()

            for one in _ENDS:
                events.on(one, look)
            try:
                answer = node.pick_up(message.job, message.run, message.attempt)
                if isinstance(answer, NotPickedUp):
                    if answer.why is Dropped.NO_HANDLER:
                        events.emit("no handler", job=message.job, run=message.run, node=self._core.settings.node)
                    self._drop(message, str(answer.why), _REMEDIES.get(answer.why))
                    return None
                hold = answer.hold
                events.emit(
                    "picked up", job=message.job, run=hold.run, slot=hold.slot, attempt=hold.attempt, fence=hold.fence,
                    node=hold.node, carrier=answer.carrier, waited_s=answer.waited,
                )  # fmt: skip
                inline = None if here is None else here.inline
                while node.attempts.has((hold.run, hold.fence)):
                    # An `on_retry` is a call of its own, before the body, and may end on an event loop.
                    if inline is None or not inline.carry_out():
                        over.wait(node.context.settings.beat)
                        over.clear()
                return hold
            finally:
                for one in _ENDS:
                    events.off(one, look)
        finally:
            with self._mutex:
                if (place := self._places.get(name)) is not None and place.here is here:
                    del self._places[name]
            self._leave()

    def _take_place(self, name: str, attempt: int, here: Here | None) -> bool:
        """Keep the caller's place for a run; return False if this process has the attempt, or a later one, already.

        A message of an earlier attempt may be on its way out, as a copy is that came late: it is waited for, as long as
        a lease. Else the message of the next attempt would be lost with it, and come again only when it is overdue.
        """
        clock = self._core.runtime.clock
        until = clock.boot() + self._core.settings.lease
        while True:
            with self._mutex:
                place = self._places.get(name)
                if place is None:
                    if here is not None:
                        self._places[name] = _Place(attempt, here)
                    return True
                if attempt <= place.attempt:
                    return False
            if clock.boot() >= until:
                return False
            self._core.runtime.event().wait(_LOOK)

    def _drop(self, message: Message, why: str, remedy: str | None = None) -> None:
        self._core.message_dropped(message, why, remedy)

    def _enter(self) -> Node:
        """Return the node of this process, begun if there is none: of the parent of a fork nothing works here."""
        while True:
            with self._mutex:
                self._forget_parent()
                if self._node is not None:
                    self._busy += 1
                    return self._node
                ready, first = self._begins, self._begins is None
                if ready is None:
                    ready = self._begins = self._core.runtime.event()
            if first:
                return self._begin(ready)
            ready.wait(self._core.settings.beat)

    def _forget_parent(self) -> None:
        """Begin with nothing in the child of a fork. The mutex is held."""
        process = self._core.runtime.process()
        if self._process != process:
            self._process, self._node, self._begins = process, None, None
            self._places.clear()
            self._busy, self._rests = 0, False

    def _begin(self, ready: Flag) -> Node:
        node = None
        try:
            self._prepare()
            node = self._make({kind: _ToThePlace(kind, self._places) for kind in ("thread", "loop", "process")})
            node.start(ticking=True)
        except BaseException:
            if node is not None:
                node.drain(0)
            with self._mutex:
                self._begins = None
            ready.set()
            raise
        with self._mutex:
            self._node, self._begins = node, None
            self._busy += 1
        ready.set()
        return node

    def _prepare(self) -> None:
        """Let the application prepare this process, before anything is picked up in it."""
        try:
            self._core.prepare()
        except SolocronError:
            raise
        except (Exception, SystemExit) as error:
            raise ConfigurationError(
                f"setup {self._core.setup} failed: {error!r:.300}. Nothing was picked up; the message is published "
                "again after its pickup=."
            ) from error

    def _leave(self) -> None:
        with self._mutex:
            self._busy -= 1
            self._last = self._core.runtime.clock.boot()
            if self._rests:
                return
            self._rests = True
        self._core.runtime.spawn(self._rest, "solocron-guest")

    def _rest(self) -> None:
        """End the session once nothing has come for a while."""
        idle = IDLE_LEASES * self._core.settings.lease
        while not self._wake.wait(idle / 2):
            with self._mutex:
                if self._busy or self._core.runtime.clock.boot() < self._last + idle:
                    continue
                break
        self._end()

    def _end(self) -> None:
        with self._mutex:
            self._rests = False
            if self._busy or self._node is None:
                return
            node, self._node = self._node, None
        node.drain(0)

    def close(self, grace: float) -> None:
        """End the session; bodies that still run are given the grace, then asked to stop."""
        with self._mutex:
            node, self._node = self._node, None
        self._wake.set()
        if node is not None and node.process == self._core.runtime.process():
            node.drain(grace)
        self._wake = self._core.runtime.event()
