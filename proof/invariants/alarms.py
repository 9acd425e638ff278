"""Alarms in a simulated world: each is raised once and cleared once, whatever dies, freezes or gets lost.

That there is cause, or none, is judged here by other means for two kinds: jobs that fail again and again, and jobs
whose handler no running code has.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from proof.invariants.checker import Violation
from solocron.events import Event
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.alarm import TURN, is_open
from solocron.model.documents.job import Job
from solocron.scheduler import Scheduler
from solocron.testing.simulation.database import Commit

if TYPE_CHECKING:
    from proof.simulator.world import World

__all__ = ["AlarmWatch"]

FAILING = 2
LOOKS = 5
"""After so many looks every alarm that there is cause for is open, and no other."""


class AlarmWatch:
    """Counts what the store has accepted, and holds what the nodes say against it."""

    def __init__(self, world: World, every: float) -> None:
        self._world = world
        self._every = every
        self.did: Counter[str] = Counter()
        self._written: Counter[str] = Counter()
        self._told: Counter[str] = Counter()
        self._since: dict[str, tuple[object, float]] = {}
        """The facts of each job that matter for alarms, and since when they have been so."""
        if every:
            world.database.on_commit.append(self._commit)

    def declare(self, scheduler: Scheduler) -> None:
        if self._every:
            lease = self._world.options.lease
            scheduler.alarms(every=self._every, late=2 * lease, failing=FAILING, patience=2 * lease)
            for name in ("alarm", "alarm cleared"):
                scheduler.events.on(name, self._hear)

    def _commit(self, commit: Commit) -> None:
        after = commit.after
        if commit.kind is Kind.JOB and isinstance(after, Job):
            matters = (after.failures >= FAILING, after.paused is None, after.removed, after.definition.enabled)
            if commit.name not in self._since or self._since[commit.name][0] != matters:
                self._since[commit.name] = matters, commit.at
            return
        if commit.kind is not Kind.ALARM or commit.name == TURN:
            return
        was, is_ = (isinstance(doc, SmallDocument) and is_open(doc) for doc in (commit.before, after))
        if was and is_:
            raise Violation("alarms", f"{commit.name} was opened although it was open")
        if was != is_:
            self.did["alarms raised" if is_ else "alarms cleared"] += 1
            self._written[f"{'alarm' if is_ else 'alarm cleared'} {commit.name}"] += 1

    def _hear(self, event: Event) -> None:
        told = f"{event.name} {event.kind}:{event.subject}"
        self._told[told] += 1
        self.did["alarms told"] += 1
        if self._told[told] > self._written[told]:
            self._world.failed(
                Violation("alarms", f"{told}: told {self._told[told]} times, {self._written[told]} written")
            )

    def check_quiescence(self) -> None:
        """Of what has not changed for some looks, exactly that is open which there is cause for."""
        if not self._every:
            return
        database, options = self._world.database, self._world.options
        patience = LOOKS * 1.2 * self._every + 3 * options.lease
        for job in database.jobs.values():
            _, since = self._since.get(job.name, (None, self._world.kernel.now))
            if self._world.kernel.now - since < patience or (Kind.JOB, job.name) in database.aside:
                continue
            counts = job.paused is None and not job.removed and job.definition.enabled
            for kind, cause in (("failing", job.failures >= FAILING), ("orphaned", self._world.is_orphaned(job))):
                found = database.docs.get((Kind.ALARM, f"{kind}:{job.name}"))
                has = found is not None and isinstance(found[0], SmallDocument) and is_open(found[0])
                self.did["alarms compared"] += 1
                if has is not (cause and counts):
                    word = "is still open" if has else "is not open"
                    raise Violation("alarms", f"{kind}:{job.name} {word}, {'with' if cause else 'without'} cause")
