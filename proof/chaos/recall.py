"""Judges what the bodies did while the store went back: their ledger does not go back with it.

The promise (I22): no attempt of a run starts twice. A slot of a job without retries does not start twice at all. No
fence is handed out twice (I3). Every due slot has a body or a record, and in the end a record (I5).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from solocron.clock import iso
from solocron.model.documents.run import ENDED, Origin, Status, key_of
from solocron.scheduler import Scheduler
from solocron.testing.fleet import Fleet, Judge, Line, Replica
from solocron.testing.fleet.ledger import END, START

__all__ = ["Findings", "Recall", "first_start", "said"]

_SAID = re.compile(r"went back|older than what it has granted", re.IGNORECASE)
"""How a log says that the store went back."""


@dataclass(slots=True, kw_only=True)
class Findings:
    """Counts, and a sentence for each thing that is not as promised."""

    slots: int = 0
    attempts_twice: dict[str, int] = field(default_factory=lambda: {"once": 0, "again": 0})
    """Attempts of a run that started more than once: of jobs without retries, and with."""
    slots_twice: dict[str, int] = field(default_factory=lambda: {"once": 0, "again": 0})
    """Slots with more than one start; with retries, a further attempt may be honest."""
    excused: int = 0
    """Attempts that started twice where a node with a start of it was killed and the job has retries."""
    fences_twice: int = 0
    lost: int = 0
    """Due slots without a body and without a record."""
    unrecorded: int = 0
    """Due slots without a last record, although a body may have run."""
    misrecorded: int = 0
    """Slots whose body ended well and of which the last record says something else."""
    faults: list[str] = field(default_factory=list)


class Recall(Judge):
    """The judge of one fleet. `once`: its jobs without retries."""

    def __init__(self, fleet: Fleet) -> None:
        scheduler = fleet.scheduler
        declared = list(scheduler.registry)
        super().__init__(
            ledger=fleet.ledger,
            store=scheduler.open().store,
            schedules={job.name: job.schedule for job in declared},
            incidents=fleet.incidents,
        )
        self.once = frozenset(job.name for job in declared if job.name.startswith("once-"))

    def look_again(self, scheduler: Scheduler) -> None:
        """Ask by way of a scheduler that has just been made: an older one may look at a file that was replaced."""
        self._store = scheduler.open().store

    def find(self, dead: Collection[int] = ()) -> Findings:
        """Return the fate of every slot; `dead`: the processes that were killed, whose attempts no node remembers."""
        found = Findings()
        starts: dict[str, list[Line]] = defaultdict(list)
        for line in self._ledger.lines(event=START):
            starts[line.key].append(line)
        for key, lines in sorted(starts.items()):
            self._twice(found, key, lines, dead)
        self._fences(found, dead)
        self._records(found, starts)
        return found

    def _twice(self, found: Findings, key: str, lines: Sequence[Line], dead: Collection[int]) -> None:
        kind = "once" if lines[0].job in self.once else "again"
        found.slots_twice[kind] += len(lines) > 1
        again = [attempt for attempt, times in Counter((line.run, line.attempt) for line in lines).items() if times > 1]
        for run, attempt in again:
            nodes = [line for line in lines if (line.run, line.attempt) == (run, attempt)]
            if kind == "again" and any(line.pid in dead for line in nodes):
                found.excused += 1
                continue
            found.attempts_twice[kind] += 1
            found.faults.append(f"I22: {key} attempt {attempt} started {len(nodes)} times: {_told(nodes)}")
        if kind == "once" and len(lines) > 1 and not again:
            found.faults.append(f"I22: {key} has no retries and started {len(lines)} times: {_told(lines)}")

    def _fences(self, found: Findings, dead: Collection[int]) -> None:
        """An attempt that starts twice is one fault and not two."""
        holders: dict[tuple[str, int], dict[tuple[str, int], Line]] = defaultdict(dict)
        for line in self._ledger.lines(event=START):
            if line.pid not in dead:
                holders[line.job, line.fence].setdefault((line.run, line.attempt), line)
        for (job, fence), lines in sorted(holders.items()):
            if len(lines) > 1:
                found.fences_twice += 1
                found.faults.append(
                    f"I3: fence {fence} of {job} was granted {len(lines)} times: {_told([*lines.values()])}"
                )

    def _records(self, found: Findings, starts: dict[str, list[Line]]) -> None:
        due, log = self.due(), self._log()
        ended = {line.key for line in self._ledger.lines(event=END)}
        found.slots = len(due)
        for job, slot in self._unrecorded(due, log):
            key = key_of(job, Origin.SCHEDULE, slot, None)
            found.unrecorded += 1
            found.lost += key not in starts
            what = "a body ran, but there is no record" if key in starts else "no body and no record"
            found.faults.append(f"I5: {job} {iso(slot)}: {what}")
        for key in ended:
            last = max(log.get(key, ()), key=lambda record: record.attempt, default=None)
            found.misrecorded += last is not None and last.status in ENDED and last.status is not Status.SUCCEEDED


def first_start(fleet: Fleet, after: float) -> Line | None:
    """The first attempt that started after a boot time; one that had started before is no news."""
    known: set[tuple[str, int]] = set()
    for line in fleet.ledger.lines(event=START):
        if line.at > after and (line.run, line.attempt) not in known:
            return line
        known.add((line.run, line.attempt))
    return None


def said(replicas: Sequence[Replica]) -> list[str]:
    """The lines of their logs that tell of a store that went back."""
    return [line for replica in replicas for line in replica.log().splitlines() if _SAID.search(line)]


def _told(lines: Sequence[Line]) -> str:
    first = min(line.at for line in lines)
    return ", ".join(f"{line.node} +{line.at - first:.2f} s (fence {line.fence})" for line in lines)
