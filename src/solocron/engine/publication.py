"""The publication of a message: what a node does under a hold that hands a run over.

No body runs here. The end is an offer, or for a carrier that forwards the outcome itself. A message that was not
accepted, or whose acceptance is in doubt, is published again later, as the same attempt and under the same id. One that
the carrier can never take, because something in it is wrong, fails its run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from solocron.dispatch.carrier import Carriage, Message, NotAccepted, make_message
from solocron.dispatch.contract import NAME, Away
from solocron.engine.attempts import Running
from solocron.errors import InvalidError
from solocron.model.documents.job import Job
from solocron.model.documents.offer import NOT_ACCEPTED, Offer
from solocron.model.documents.run import Status
from solocron.model.transitions.finishing import HandOver, NotPublished, Outcome

if TYPE_CHECKING:
    from solocron.engine.runner import Runner

__all__ = ["Publication", "backoff"]

FIRST, MOST = 1_000_000, 60_000_000
"""Microseconds after which a message that was not accepted is published again: doubling between these."""


def backoff(tries: int) -> int:
    """Return how long a run waits after so many hand-overs of it."""
    return int(min(FIRST * 2 ** min(tries - 1, 16), MOST))


class Publication:
    """One hand-over on this node, as its dispatcher knows it."""

    __slots__ = ("_carriage", "_message", "_node", "_offer", "_why", "running")

    def __init__(self, node: Runner, job: Job, running: Running, offer: Offer) -> None:
        self._node = node
        self._offer = offer
        self._why: str | None = None
        """What the carrier says of a message that was not picked up."""
        self._carriage: Carriage = node.context.carriers[offer.carrier]
        self._message: Message = make_message(
            job, running.hold, namespace=node.context.store.namespace, follows=offer.follows
        )
        self.running = running

    def start(self) -> bool:
        """Submit it; False if it has been handed back."""
        node, running = self._node, self.running
        node.context.runtime.failpoint("claimed")
        if node.attempts.draining:
            node.attempts.revoke(running)
            node.hand_back(running, "handed back: its node shuts down")
            return False
        running.interrupt = node.calling.dispatchers["thread"].submit(self)
        return True

    # --- what the dispatcher asks for --------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return f"{NAME}{self.running.hold.run}"

    def begin(self) -> bool:
        return self._node.attempts.begin(self.running)

    def body(self) -> Callable[[], Any]:
        return self._publish

    def _publish(self) -> None:
        if self._offer.lapsed:
            hold = self.running.hold
            self._why = self._carriage.look(self._message.id)
            self._node.context.events.emit(
                "not picked up", job=self.running.job, run=hold.run, attempt=hold.attempt,
                carrier=self._carriage.name, since=self._offer.since, tries=self._offer.tries, reason=self._why,
            )  # fmt: skip
        self._carriage.publish(self._message)

    def away(self) -> Away:
        raise AssertionError("a message is published by the node itself")

    def end(self, value: Any, error: BaseException | None) -> None:
        """Take what became of the publication."""
        self._node.context.runtime.failpoint("published")
        self._node.handed_over(self.running, self._end(error))

    def _end(self, error: BaseException | None) -> Outcome | HandOver | NotPublished:
        carrier = self._carriage.name
        if error is None and self._offer.follows:
            return HandOver(pickup=self._carriage.pickup, carrier=carrier, message=self._message.id, note=self._why)
        if error is None:
            return Outcome(status=Status.HANDED_OVER, reason=f"accepted by {carrier} as {self._message.id}")
        if isinstance(error, InvalidError):
            return Outcome(status=Status.FAILED, error=f"{carrier} cannot carry it: {error}", final=True)
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        sure = isinstance(error, NotAccepted)
        note = f"{NOT_ACCEPTED}{carrier} ({said:.200})" if sure else f"{carrier} gave no clear answer ({said:.200})"
        return NotPublished(wait=backoff(self._offer.tries), carrier=carrier, note=note)
