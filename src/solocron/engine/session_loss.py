"""Losing the session: stop every body under it, write nothing more, begin anew."""

from __future__ import annotations

from solocron.dispatch.contract import Stop
from solocron.engine.attempts import Attempts
from solocron.engine.memory import Memory
from solocron.engine.node_context import NodeContext
from solocron.engine.runner import Runner

__all__ = ["SessionLoss"]


class SessionLoss:
    """Ends a session for the keeper when it is gone, and for the watchdog when it can no longer be trusted."""

    def __init__(self, context: NodeContext, attempts: Attempts, runner: Runner, memory: Memory) -> None:
        self._context = context
        self._attempts = attempts
        self._runner = runner
        self._memory = memory
        self.rests_until = 0.0
        """Boot time before which no new session begins."""

    def lose(self, reason: str) -> None:
        session, bodies = self._attempts.lose()
        if session is None:
            return
        self._context.events.emit(
            "session lost", session=session, node=self._context.settings.node, reason=reason, bodies=len(bodies)
        )
        self._memory.session_lost(session)
        for running in bodies:
            self._runner.stop(running, Stop("lost", f"this node lost its lease: {reason}"))
        self._context.signals.finish.wake()
        self._context.signals.keep.wake()

    def lose_and_rest(self, reason: str) -> None:
        """Lose it, and begin no new session for a lease: other nodes take the runs that this node could not end."""
        self.rests_until = self._context.runtime.clock.boot() + self._context.settings.lease
        self.lose(reason)
