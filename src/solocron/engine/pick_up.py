"""Claims the run of a message for the process that got it, and starts it there."""

from __future__ import annotations

from dataclasses import dataclass

from solocron.engine.attempts import Attempts
from solocron.engine.claim_pass import Starter
from solocron.engine.namespace_gate import NamespaceGate
from solocron.engine.node_context import NodeContext
from solocron.engine.requirements import Requirements
from solocron.errors import StoreError, StoreUnavailable
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.offer import Offer
from solocron.model.transitions.offering import Dropped, NotPickedUp, offer_of, pick_up
from solocron.stores.contract import Named, Result, Verdict

__all__ = ["PickUp", "PickedUp"]

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two tries, doubling."""


@dataclass(frozen=True, slots=True)
class PickedUp:
    """A run that this process has got, and how long its message had been under way."""

    hold: Hold
    carrier: str | None
    waited: float | None
    """Seconds since the first hand-over of the attempt, by the store's clock; None if no reply told them."""


class PickUp:
    """Shows tickets to the store under this process's session."""

    def __init__(
        self,
        context: NodeContext,
        attempts: Attempts,
        gate: NamespaceGate,
        requirements: Requirements,
        starter: Starter,
    ) -> None:
        self._context = context
        self._attempts = attempts
        self._gate = gate
        self._requirements = requirements
        self._starter = starter
        self._mutex = context.runtime.mutex()
        self._starting: set[tuple[str, int]] = set()

    def claim(self, job: str, run: str, attempt: int) -> PickedUp | NotPickedUp:
        """Hold the attempt and start its body, or say why the message starts nothing.

        A try whose reply was lost may have been applied, so it is repeated under the same session until the answer is
        known. `StoreUnavailable` if that takes longer than the session can be trusted: then nothing was started here.
        """
        session, call = self._attempts.lease.session, self._attempts.call_begins()
        try:
            result, epoch, offer, at = self._show(job, run, attempt, session)
            answer = NotPickedUp(Dropped.NO_JOB) if result.verdict is Verdict.DECLINED else result.answer
            if not isinstance(answer, Hold):
                assert isinstance(answer, NotPickedUp)
                return answer
            assert session is not None
            held = self._start(result, answer, session, epoch)
            if isinstance(held, NotPickedUp):
                return held
            waited = None if offer is None else max(0, at - offer.since) / 1_000_000
            return PickedUp(held, None if offer is None else offer.carrier, waited)
        finally:
            # Not before the claim is in the table: the keeper would take it for one whose reply was lost.
            self._attempts.call_ends(call)

    def _start(self, result: Result, hold: Hold, session: str, epoch: str) -> Hold | NotPickedUp:
        """Start the body. A second copy of the message, at once or later, is answered with the same hold.

        That answer writes nothing, so no gate was tested: the store may have gone back to before the body ended.
        """
        key = (hold.run, hold.fence)
        with self._mutex:
            if key in self._starting or self._attempts.knows(key) or self._starter.remembers(key):
                return NotPickedUp(Dropped.STALE)
            self._starting.add(key)
        try:
            if not self._starter.start([result], session, epoch):
                raise StoreUnavailable(f"{hold.run} was not started: this process lost its session meanwhile.")
        finally:
            with self._mutex:
                self._starting.discard(key)
        return hold

    def _show(self, job: str, run: str, attempt: int, session: str | None) -> tuple[Result, str, Offer | None, int]:
        """Return the store's answer, the epoch under which it was given, the offer as it stood, and when that was."""
        clock, lease, signals = self._context.runtime.clock, self._attempts.lease, self._context.signals
        in_doubt, pause, until = False, FIRST_PAUSE, clock.boot() + self._context.settings.lease
        seen: tuple[Offer | None, int] = (None, 0)
        while session is not None and lease.holds(session) and (in_doubt or clock.boot() < until):
            if self._gate.may_claim():
                epoch, gate, pauses = self._gate.for_claims()
                by = self._requirements.claimant(session, alone=True, pauses=pauses)

                def change(doc: Job | Absent, now: int, by=by) -> Change | None:  # type: ignore[no-untyped-def]
                    nonlocal seen
                    offer = offer_of(doc, run, attempt)
                    if offer is not None:  # gone after a try whose reply was lost
                        seen = offer, now
                    return pick_up(doc, run=run, attempt=attempt, now=now, by=by, resolve=self._context.resolve)

                try:
                    applied = self._context.store.update(Named(Kind.JOB, (job,)), change, session=session, gate=gate)
                except StoreError:
                    in_doubt = True
                else:
                    if applied.shut or not applied.alive:
                        self._gate.shut()
                        signals.keep.wake()
                    elif applied.results[0].verdict in (Verdict.APPLIED, Verdict.DECLINED):
                        return applied.results[0], epoch, *seen
                    else:
                        in_doubt = in_doubt or applied.results[0].verdict is Verdict.UNKNOWN
            self._context.runtime.event().wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        raise StoreUnavailable(f"{run} was not picked up: the store did not acknowledge it. Deliver the message again.")
