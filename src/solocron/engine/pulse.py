"""Looks after the node's own health each beat, on a thread of its own, and never calls the store.

What it finds is written down for probes of other processes. So a node that is frozen, or whose threads are starved, is
seen by its silence; a loop that is dead or an event loop that is blocked by what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from solocron.dispatch.contract import LoopBlock
from solocron.engine.attempts import Attempts
from solocron.engine.keeper import Keeper
from solocron.engine.node_context import NodeContext
from solocron.loop import Loop
from solocron.views.health import HealthView, judge

__all__ = ["Pulse", "Vitals"]

LOOK = 1.0
"""Seconds between two looks at an event loop."""
_WORTH_A_LINE = 1.0
"""Seconds for which an event loop must have been blocked to be logged."""


@dataclass(frozen=True, slots=True)
class Vitals:
    """The ways out of the engine: where health is written, and how an event loop is watched."""

    write: Callable[[HealthView], None]
    """Writes the node's health where probes find it."""
    remove: Callable[[], None]
    watch: Callable[[], LoopBlock | None]
    """Returns how long the event loop has not responded; None if no job has used one yet."""


class Pulse:
    """Collects the facts of one node's health."""

    def __init__(self, context: NodeContext, attempts: Attempts, keeper: Keeper, vitals: Vitals | None) -> None:
        self._context = context
        self._attempts = attempts
        self.keeper = keeper
        self._vitals = vitals
        self.loops: Mapping[str, Loop] = {}
        """The loops that have been started."""
        self._blocked: LoopBlock | None = None
        self._reported: str | None = None
        """The event loop's state that was last logged, so that a block is logged at a beat and at its end only."""
        self._next = 0.0

    def step(self, now: float) -> float:
        """Look at the event loop; write the health if a beat has passed since the last time."""
        assert self._vitals is not None
        self._look_at_event_loop(self._vitals.watch())
        if now >= self._next:
            self._next = now + self._context.settings.beat
            self._vitals.write(self.look())
        return self._next if self._blocked is None else min(self._next, now + LOOK)

    def end(self) -> None:
        """Remove what was written: the node has stopped in an orderly way."""
        if self._vitals is not None:
            self._vitals.remove()

    def look(self) -> HealthView:
        """Return the node's health as it is now."""
        settings, lease, now = self._context.settings, self._attempts.lease, self._context.runtime.clock.boot()
        until, blocked = lease.trusted_until(), self._blocked
        return judge(
            HealthView(
                node=settings.node,
                namespace=self._context.store.namespace,
                host=settings.host,
                pid=settings.pid,
                alive=True,
                ready=True,
                why=(),
                session=lease.session,
                trusted_for_s=None if until is None else until - now,
                store_answers=lease.session is not None and not self.keeper.failing,
                loops={name: loop.in_step(now) for name, loop in self.loops.items()},
                event_loop_lag_s=None if blocked is None else 0.0 if blocked.over else blocked.seconds,
                blocked_by=None if blocked is None or blocked.over else blocked.run,
                running=len(self._attempts.running()),
                draining=self._attempts.draining,
                lease_s=settings.lease,
                age_s=0.0,
            )
        )

    def _look_at_event_loop(self, blocked: LoopBlock | None) -> None:
        """Log a block at its end, and once before if it lasts for a beat: perhaps it never ends."""
        self._blocked = blocked
        if blocked is None:
            return
        still = not blocked.over
        worth = blocked.seconds >= (self._context.settings.beat if still else _WORTH_A_LINE)
        said = f"{blocked.since} {still}"
        if not worth or said == self._reported:
            return
        self._reported = said
        self._context.events.emit(
            "event loop blocked", node=self._context.settings.node, job=blocked.job, run=blocked.run,
            blocked_s=blocked.seconds, still=still,
        )  # fmt: skip
