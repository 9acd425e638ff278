"""Waits for the changes of other nodes, and takes in the triggers that transactions have left.

Here, and in no loop that others depend on, triggers are taken in: after each change, and after each wait.
"""

from __future__ import annotations

from solocron.engine.attempts import Attempts
from solocron.engine.node_context import NodeContext
from solocron.engine.transactional_triggers import TransactionalTriggers
from solocron.lease.trust import Standing

__all__ = ["LONGEST_PAUSE", "ChangeListener"]

LONGEST_PAUSE = 0.5
"""Maximum seconds before a node that could not listen for changes tries again."""


class ChangeListener:
    """Wakes the claimer and the sweeper for each change, and the keeper too if the node runs something."""

    def __init__(self, context: NodeContext, attempts: Attempts, triggers: TransactionalTriggers) -> None:
        self._context = context
        self._attempts = attempts
        self._triggers = triggers
        self._listening = True

    def step(self, now: float) -> float:
        self._triggers.step()
        signals = self._context.signals
        if self._listening and self._context.store.wait(self._context.settings.poll):
            signals.claim.look_again()
            signals.sweep.wake()
            if self._attempts.running() and self._attempts.lease.standing() is not Standing.NONE:
                signals.keep.wake()
        return self._context.runtime.clock.boot()

    def stop(self) -> None:
        """Stop listening; end the wait that is under way, if the store can."""
        self._listening = False
        self._context.store.signal()
