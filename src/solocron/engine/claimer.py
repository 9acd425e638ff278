"""Finds what is due and claims it, never more than the node can start at once; sleeps to the next due instant."""

from __future__ import annotations

from math import inf

from solocron.engine.attempts import Attempts
from solocron.engine.claim_pass import Claimed, ClaimPass
from solocron.engine.namespace_gate import NamespaceGate
from solocron.engine.node_context import NodeContext
from solocron.engine.pacing import LookPlan, next_look
from solocron.lease.trust import Standing
from solocron.stores.contract import Verdict

__all__ = ["Claimer"]

FIRST, BATCH = 100, 200
"""Batch size of the first claim, and of claims under backlog. Larger batches barely reduce statements, but delay starts
and starve other nodes."""


class Claimer:
    """One pass per step."""

    def __init__(self, context: NodeContext, attempts: Attempts, gate: NamespaceGate, claim_pass: ClaimPass) -> None:
        self._context = context
        self._attempts = attempts
        self._gate = gate
        self._pass = claim_pass
        self._plan = LookPlan(at=0.0)

    def step(self, now: float) -> float:
        """Claim what is due and start it; return when the next job is due."""
        signal, settings = self._context.signals.claim, self._context.settings
        self._take_notice()
        # From here on every change wakes the loop once more: nothing is missed between looking and planning.
        limit = min(self._attempts.free(), BATCH if signal.backlog else FIRST)
        signal.planned, signal.starved = inf, True
        session = self._attempts.lease.session
        held = session is not None and self._attempts.lease.standing() is Standing.HELD
        if session is None or not held or self._attempts.draining or limit == 0:
            return self._rest_until(now + settings.poll)
        if not self._gate.may_claim():
            return self._rest_until(self._gate.claims_from() or now + settings.poll)
        signal.starved = False
        claimed = self._pass.run(session, limit, now)
        if claimed.refused:
            signal.starved = True
            return now + settings.beat
        self._report_in_vain(claimed, now)
        self._plan = self._next(claimed)
        signal.starved = self._plan.starved
        signal.planned = self._plan.at
        return self._plan.at

    def claim_once(self, only: str | None = None) -> int:
        """Make one pass for an external trigger; return how many jobs were decided or bodies started.

        With `only`, of that one job.
        """
        self._take_notice()
        session = self._attempts.lease.session
        limit = min(self._attempts.free(), BATCH)
        trusted = self._attempts.lease.standing() is not Standing.NONE
        if session is None or limit == 0 or not trusted or not self._gate.may_claim():
            return 0
        claimed = self._pass.run(session, limit, self._context.runtime.clock.boot(), only)
        return max(claimed.started, claimed.decided(), int(claimed.fetched))

    def _take_notice(self) -> None:
        """Take up what the other loops have reported since the last look."""
        signal = self._context.signals.claim
        if signal.anew:
            signal.anew = False
            self._pass.left_alone.forget_turns()
        if signal.redefined:
            signal.redefined = False
            self._pass.left_alone.forget_undecidable()

    def _rest_until(self, at: float) -> float:
        """Claim nothing for now: there is no place, no trusted session, or the namespace is shut."""
        self._context.signals.note_backlog(False)
        self._context.signals.claim.planned = at
        return at

    def _report_in_vain(self, claimed: Claimed, now: float) -> None:
        """Emit that another node was faster, if this node expected something to be due."""
        expected = self._plan.expected
        was_due = expected is not None and now >= expected
        if was_due and not any(result.verdict is Verdict.APPLIED for result in claimed.applied.results):
            self._context.events.emit("held elsewhere", node=self._context.settings.node)

    def _next(self, claimed: Claimed) -> LookPlan:
        if claimed.fetched:
            return LookPlan(at=claimed.replied, in_vain=self._plan.in_vain)
        left_alone, settings = self._pass.left_alone, self._context.settings
        return next_look(
            claimed.applied,
            replied=claimed.replied,
            latest=left_alone.latest(claimed.replied + settings.poll),
            left_alone=left_alone,
            boot_of=self._attempts.lease.boot_of,
            backlog=self._context.signals.claim.backlog,
            in_vain=self._plan.in_vain,
            jitter=self._context.runtime.rng.uniform(0.5, 1.5),
        )
