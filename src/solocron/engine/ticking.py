"""What a caller has a node do at once, while its loops do not claim: a pass for a trigger, one run, one message."""

from __future__ import annotations

from dataclasses import dataclass

from solocron.engine.claimer import Claimer
from solocron.engine.finisher import Finisher
from solocron.engine.node_context import NodeContext
from solocron.engine.pick_up import PickUp
from solocron.engine.run_now import RunNow
from solocron.engine.sweeper import Sweeper
from solocron.engine.transactional_triggers import TransactionalTriggers

__all__ = ["OnDemand", "Tick"]


class Tick:
    """Sweeps, takes triggers in, runs what is due and what that makes due, then returns.

    Bodies that the caller's thread carries out are carried out between two claims.
    """

    def __init__(
        self,
        context: NodeContext,
        claimer: Claimer,
        finisher: Finisher,
        sweeper: Sweeper,
        triggers: TransactionalTriggers,
    ) -> None:
        self._context = context
        self._claimer = claimer
        self._finisher = finisher
        self._sweeper = sweeper
        self._triggers = triggers

    def run(self, claim_for: float | None = None, only: str | None = None) -> None:
        """Do one pass; with `only`, claim of that one job."""
        self._sweeper.sweep_for_tick()
        self._triggers.step()
        self._claim_and_wait(claim_for, only)

    def _claim_and_wait(self, claim_for: float | None, only: str | None) -> None:
        """Claim until nothing is due and nothing runs.

        Claims end after a lease or earlier, or a job that is due every second would keep one pass going forever.
        """
        clock, settings = self._context.runtime.clock, self._context.settings
        until = clock.boot() + (settings.lease if claim_for is None else min(settings.lease, claim_for))
        while True:
            # Before the claim: what ends after it may have made something due that it could not see.
            idle = self._finisher.begin_wait()
            if clock.boot() < until and self._claimer.claim_once(only):
                continue
            if self._context.inline is not None and self._context.inline.carry_out():
                continue
            if idle:
                if clock.boot() < until and self._sweeper.review_noted():
                    continue
                return
            self._finisher.wait_for_an_end(settings.beat)


@dataclass(frozen=True, slots=True)
class OnDemand:
    """The services of a node that a caller uses directly."""

    tick: Tick
    run_now: RunNow
    pick_up: PickUp
