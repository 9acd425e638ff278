"""Ends what may not continue, without ever calling the store.

That is: a session that can no longer be trusted, or under which ends are not recorded; bodies past their deadline. A
store call that hangs cannot hang this loop, so bodies are stopped in time whatever the network does.
"""

from __future__ import annotations

from solocron.dispatch.contract import Stop
from solocron.engine.attempts import Attempts, Phase, Running
from solocron.engine.node_context import NodeContext
from solocron.engine.runner import Runner
from solocron.engine.session_loss import SessionLoss

__all__ = ["Watchdog"]


class Watchdog:
    """Looks at trust and deadlines, on the boot clock."""

    def __init__(self, context: NodeContext, attempts: Attempts, runner: Runner, loss: SessionLoss) -> None:
        self._context = context
        self._attempts = attempts
        self._runner = runner
        self._loss = loss

    def step(self, now: float) -> float:
        """Stop what must stop; return the earliest moment at which something else may have to."""
        moments = [now + self._context.settings.poll]
        until = self._attempts.lease.trusted_until()
        if until is not None:
            if now >= until:
                self._loss.lose("it could not be renewed in time")
            else:
                moments.append(until)
        since = self._attempts.unrecorded_since()
        if since is not None:
            patience = since + 2 * self._context.settings.lease
            if now >= patience:  # renewals succeed, but ends are not recorded: another node may be able to
                self._loss.lose_and_rest("the outcome of a run could not be recorded for two leases")
            else:
                moments.append(patience)
        for running in self._attempts.bodies():
            moments += self._look_at(running, now)
        return min(moments)

    def _look_at(self, running: Running, now: float) -> list[float]:
        if running.phase is not Phase.BEGUN:
            return []
        if running.stop is None and running.expires is not None:
            if now < running.expires:
                return [running.expires]
            self._runner.stop(running, Stop("timeout", "still running at its deadline"))
        if running.stop is None or running.stop_at is None or running.stuck:
            return []
        # Already asked to stop: a body that has not ended after a while may hold its thread forever.
        patience = running.stop_at + min(self._context.settings.lease, 10.0)
        if now < patience:
            return [patience]
        if self._attempts.mark_stuck(running):
            self._context.events.emit(
                "stuck", job=running.job, run=running.hold.run, fence=running.hold.fence,
                node=self._context.settings.node, reason=running.stop.reason, on_stuck=running.definition.on_stuck,
            )  # fmt: skip
            if running.definition.on_stuck == "abandon":
                self._runner.abandon(running)
        return []
