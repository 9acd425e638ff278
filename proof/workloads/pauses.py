"""An operator who pauses many jobs at once, over the same bad network, and lifts it again."""

from __future__ import annotations

import random
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from solocron.clock import from_us
from solocron.errors import ConflictError, StoreError
from solocron.model.change import Kind
from solocron.model.documents import namespace
from solocron.model.documents.scoped_pause import ScopedPause
from solocron.testing.simulation.kernel import SimEvent
from solocron.views import ScopedPauseView

if TYPE_CHECKING:
    from proof.simulator.world import World

__all__ = ["Operator", "pauses_of"]

_SCOPES: tuple[dict[str, Any], ...] = ({}, {"pool": "default"}, {"match": "job-*"}, {"match": "*-[02468]"})


class Operator:
    """One process with dice of its own, so that a world without pauses stays what it was."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._dice = random.Random(f"operator {world.options.seed}")

    def start(self, mean: float, until: float) -> None:
        member = self._world.join("operator")
        self._client = member.scheduler.open()
        nap = SimEvent(self._world.kernel)

        def live() -> None:
            while True:
                nap.wait(min(self._dice.expovariate(1 / mean), max(until - self._world.kernel.now, 0.0)))
                if self._world.kernel.now >= until:
                    self._world.guarded(self._lift_all)
                    return
                self._world.guarded(self._ask)

        member.process.spawn(live, "operator")

    def _ask(self) -> None:
        try:
            standing = self._client.pauses()
            if standing and self._dice.random() < 0.6:
                self._lift(self._dice.choice(standing))
            else:
                self._pause()
        except StoreError:
            self._world.faults["request unanswered"] += 1
        except ConflictError:
            pass  # as many stand as may
        else:
            self._world.faults["pauses"] += 1

    def _pause(self) -> None:
        dice, lease, until = self._dice, self._world.options.lease, None
        if dice.random() < 0.5:
            now = self._world.database.clock()
            until = from_us(now) + timedelta(seconds=60 + dice.uniform(0.1, 6) * lease)
        scope = dice.choice(_SCOPES)
        self._client.pause_all(**scope, by="operator", note="maintenance", until=until, triggers=dice.random() < 0.3)

    def _lift(self, pause: ScopedPauseView) -> None:
        self._client.resume_all(pool=pause.pool, match=pause.match, by="operator")

    def _lift_all(self) -> None:
        """Lift every pause at the end, after the last request: one that is under way could land after it otherwise."""
        while standing := [one for one in pauses_of(self._world) if one.stands(self._world.database.clock())]:
            for pause in standing:
                self._world.patient(partial(self._lift, ScopedPauseView.of(pause)))


def pauses_of(world: World) -> tuple[ScopedPause, ...]:
    """Return the pauses that the namespace's document lists at this moment."""
    held = world.database.docs.get((Kind.NAMESPACE, namespace.NAME))
    known = None if held is None else namespace.read(held[0])
    return () if known is None else known.pauses
