"""Ends a node: stop claiming, let runs end within the grace, hand back what never started, close the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from solocron.dispatch.contract import Dispatcher, Stop
from solocron.engine.attempts import Attempts, Phase
from solocron.engine.finisher import Finisher
from solocron.engine.listener import ChangeListener
from solocron.engine.node_context import NodeContext
from solocron.engine.recovery import Recovery
from solocron.engine.runner import Runner
from solocron.engine.takeover import Takeover
from solocron.errors import StoreUnavailable
from solocron.loop import Loop
from solocron.stores.contract import Gate
from solocron.stores.until_known import OPEN_OUTCOMES

__all__ = ["OF_A_TICK", "TO_THE_END", "Departure", "Drain"]

OF_A_TICK = ("keeper", "watchdog", "finisher")
"""The loops that a tick needs."""
TO_THE_END = (*OF_A_TICK, "pulse")
"""The loops that run until no body is left: a node that drains is alive."""


class Departure:
    """The orderly end of a node's listener, session and dispatchers."""

    def __init__(
        self,
        context: NodeContext,
        recovery: Recovery,
        takeover: Takeover,
        listener: ChangeListener,
        dispatchers: Mapping[str, Dispatcher],
    ) -> None:
        self._context = context
        self._recovery = recovery
        self._takeover = takeover
        self._listener = listener
        self._dispatchers = dispatchers

    def stop_listening(self) -> None:
        self._survive(self._listener.stop)

    def close_session(self, session: str, why: str, *, checked: bool = True) -> None:
        """Close the session, now that no body is left. If the store is unavailable, its lease expires.

        With `checked`, only in a store that this node has checked. If it went back, this node may be the only one that
        remembers what was lost: left alone, its session keeps the namespace shut until another node has buried it, and
        that one writes off what may have run here.
        """
        gate = self._recovery.gate.as_checked() if checked else None
        self._survive(lambda: self._close(session, why, gate))

    def close_dispatchers(self) -> None:
        for dispatcher in self._dispatchers.values():
            dispatcher.close()

    def _close(self, session: str, why: str, gate: Gate | None) -> None:
        closed = self._recovery.holder.close(session, why, gate=gate)
        if closed.shut:
            raise StoreUnavailable("the store went back, so this session is left to its lease and to the other nodes")
        # What it holds is free only once the session has ended: while it lives, a claim under way may still be granted.
        over = not closed.alive or all(result.verdict not in OPEN_OUTCOMES for result in closed.results)
        if over and self._takeover.take_from(session, f"{self._context.settings.node} stopped"):
            self._takeover.mark_swept(session)

    def _survive(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - whatever it is, the node leaves
            self._context.events.emit("store error", loop="drain", error=str(error) or repr(error), failures=1)


class Drain:
    """The end of a node, once."""

    def __init__(
        self, context: NodeContext, attempts: Attempts, runner: Runner, finisher: Finisher, departure: Departure
    ) -> None:
        self._context = context
        self._attempts = attempts
        self._runner = runner
        self._finisher = finisher
        self._departure = departure
        self.reason = "drained: its node stopped"
        """Reason for closing the session, as it is recorded."""
        self.started = False
        """Whether loops run: a node that the store refused has none."""

    def run(self, loops: Mapping[str, Loop], grace: float) -> bool:
        """Drain and leave; True if nothing is left."""
        if not self.started:
            return self._give_up()
        clock, settings = self._context.runtime.clock, self._context.settings
        self._attempts.draining = True
        for name, loop in loops.items():
            if name not in TO_THE_END:
                loop.stop()
        self._departure.stop_listening()
        until = clock.boot() + grace
        # A claim under way may still bring something, which is handed back.
        loops["claimer"].join(timeout=min(grace, settings.beat))
        for running in self._attempts.running():
            if running.phase is Phase.CLAIMED:
                self._runner.stop(running, Stop("shutdown", "handed back: its node shuts down"))
        if not self._finisher.wait_idle(max(0.0, until - clock.boot())):
            for running in self._attempts.running():
                self._runner.stop(running, Stop("shutdown", "cut off: its node shuts down"))
            self._finisher.wait_idle(min(5.0, settings.lease / 3))
        loops["keeper"].stop()
        loops["keeper"].join(timeout=2.0)
        clean, session = self._attempts.leave()
        if session is not None:
            self._departure.close_session(session, self.reason)
        for loop in loops.values():
            loop.stop()
        for loop in loops.values():
            loop.join(timeout=2.0)
        self._departure.close_dispatchers()
        self._context.events.emit("node stopped", node=settings.node, clean=clean)
        return clean

    def _give_up(self) -> bool:
        """End a node whose start was refused: at most its session has begun, and the caller gets the reason."""
        clean, session = self._attempts.leave()
        if session is not None:
            self._departure.close_session(session, "its start was refused", checked=False)
        self._departure.close_dispatchers()
        return clean
