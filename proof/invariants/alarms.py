"""Alarms in a simulated world: a kind is raised once and cleared once, whatever dies, freezes or gets lost.

That there is cause, or none, is judged here by other means for two kinds: jobs that fail again and again, and jobs
whose handler no running code has.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from proof.invariants.checker import Violation
from solocron.events import Event
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.alarm import KINDS, TURN, is_open
from solocron.model.documents.alarm_message import AlarmMessage, MessagePhase, MessageStep, document_of, read
from solocron.model.documents.job import Job
from solocron.scheduler import Scheduler
from solocron.testing.simulation.database import Commit

if TYPE_CHECKING:
    from proof.simulator.world import World

__all__ = ["AlarmWatch"]

FAILING = 2
LOOKS = 5
"""After so many looks every alarm that there is cause for is open, and no other."""
RATE = "1000/d"
"""So many that worlds of some hours have all the messages that there is cause for."""


MESSAGES = {document_of(kind): kind for kind in KINDS}


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
        self._changed: dict[str, float] = {}
        """When an alarm of each kind was last opened or closed."""
        if every:
            world.database.on_commit.append(self._commit)

    def declare(self, scheduler: Scheduler) -> None:
        if self._every:
            lease = self._world.options.lease
            scheduler.alarms(
                every=self._every, late=2 * lease, failing=FAILING, patience=2 * lease, settle=self._every, rate=RATE
            )
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
        if commit.name in MESSAGES:
            self._step(MESSAGES[commit.name], commit)
            return
        was, is_ = (isinstance(doc, SmallDocument) and is_open(doc) for doc in (commit.before, after))
        if was != is_:
            self.did["alarms opened" if is_ else "alarms closed"] += 1
            self._changed[commit.name.partition(":")[0]] = commit.at

    def _step(self, kind: str, commit: Commit) -> None:
        """Note a step of a kind's message; raised and cleared alternate."""
        before, after = (
            read(doc) if isinstance(doc, SmallDocument) else AlarmMessage() for doc in (commit.before, commit.after)
        )
        if before.token == after.token:
            return
        if (before.phase is MessagePhase.RAISED) is (after.step is MessageStep.RAISED):
            raise Violation("alarms", f"{kind} was {after.step} while it was {before.phase}")
        cleared = after.step is MessageStep.CLEARED
        self.did["alarms cleared" if cleared else "alarms raised"] += 1
        self._written[f"{'alarm cleared' if cleared else 'alarm'} {kind}"] += 1

    def _hear(self, event: Event) -> None:
        told = f"{event.name} {event.kind}"
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
        self._check_messages(patience)

    def _check_messages(self, patience: float) -> None:
        """A kind whose alarms have not changed for some looks is raised if one of them is open, and else it is not."""
        database = self._world.database
        docs = [doc for doc, _ in database.docs.values() if isinstance(doc, SmallDocument) and doc.kind is Kind.ALARM]
        for kind in ("failing", "orphaned"):
            if self._world.kernel.now - self._changed.get(kind, 0.0) < patience:
                continue
            found = database.docs.get((Kind.ALARM, document_of(kind)))
            message = read(found[0]) if found is not None and isinstance(found[0], SmallDocument) else AlarmMessage()
            wanted = any(is_open(doc) and doc.body["kind"] == kind for doc in docs)
            self.did["messages compared"] += 1
            if (message.phase is MessagePhase.RAISED) is not wanted:
                raise Violation("alarms", f"{kind} is {message.phase}, and {'some' if wanted else 'none'} is open")
