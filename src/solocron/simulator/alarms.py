"""Alarms in a simulated world: whatever dies, freezes or gets lost, nobody tells twice of one alarm."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from solocron.events import Event
from solocron.model.alarm import TURN, is_open
from solocron.model.change import Kind, Note
from solocron.scheduler import Scheduler
from solocron.simulator.checker import Violation
from solocron.simulator.database import Commit

if TYPE_CHECKING:
    from solocron.simulator.world import World

__all__ = ["AlarmWatch"]


class AlarmWatch:
    """Counts what the store has accepted, and holds what the nodes say against it."""

    def __init__(self, world: World, every: float) -> None:
        self._world = world
        self._every = every
        self.did: Counter[str] = Counter()
        self._written: Counter[str] = Counter()
        self._told: Counter[str] = Counter()
        world.database.on_commit.append(self._commit)

    def declare(self, scheduler: Scheduler) -> None:
        if self._every:
            lease = self._world.options.lease
            scheduler.alarms(every=self._every, late=2 * lease, failing=2, patience=2 * lease)
            for name in ("alarm", "alarm cleared"):
                scheduler.events.on(name, self._hear)

    def _commit(self, commit: Commit) -> None:
        if commit.kind is not Kind.ALARM or commit.name == TURN:
            return
        before = isinstance(commit.before, Note) and is_open(commit.before)
        after = isinstance(commit.after, Note) and is_open(commit.after)
        if before and after:
            raise Violation("alarms", f"{commit.name} was opened although it was open")
        if before != after:
            self.did["alarms written"] += 1
            self._written[f"{'alarm' if after else 'alarm cleared'} {commit.name}"] += 1

    def _hear(self, event: Event) -> None:
        told = f"{event.name} {event.kind}:{event.subject}"
        self._told[told] += 1
        self.did["alarms told"] += 1
        if self._told[told] > self._written[told]:
            self._world.failed(
                Violation("alarms", f"{told}: told {self._told[told]} times, {self._written[told]} written")
            )
