"""A tiny world for the pure machine: one dict of documents, one store clock, and every commit kept in order.

A commit has the document before and after it, what was asked, logged and answered; the books tell the tale of each run
from what was logged alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from solocron.clock import SECOND
from solocron.model.change import Absent, Change, Kind
from solocron.model.codec import decode, encode
from solocron.model.documents.job import Hold, Job, WaitingRun
from solocron.model.documents.run import Origin, Record, Status, group_of, shard_of
from solocron.model.documents.session import Life, Session
from solocron.model.timetable import EMPTY, Timetable
from solocron.model.transitions import catchup, commands
from solocron.model.transitions.claimant import record_of
from solocron.model.transitions.shards import each
from solocron.schedules import load

__all__ = [
    "LATE_FOR",
    "LEASE",
    "QUEUE",
    "Commit",
    "Tale",
    "Which",
    "World",
    "books",
    "covered",
    "resolve",
    "small_queues",
    "waiting",
]

LEASE = 15 * SECOND
LATE_FOR = LEASE + 2 * (LEASE // 3)
QUEUE = 8
"""How many runs may wait in this world: few enough for a queue to be full now and then."""


@contextmanager
def small_queues() -> Iterator[None]:
    """The machine with room for `QUEUE` waiting runs."""
    with patch.object(catchup, "QUEUE_LIMIT", QUEUE), patch.object(commands, "QUEUE_LIMIT", QUEUE):
        yield


def resolve(spec: Mapping[str, Any] | None) -> Timetable:
    """The slots of a stored schedule."""
    return EMPTY if spec is None else Timetable(load(spec))


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One call of a transition: what was asked, the document before and after, what was logged and answered."""

    at: int
    verb: str
    name: str
    before: Job | Session | None
    after: Job | Session | None
    records: tuple[Record, ...]
    accepted: bool
    answer: Any
    asked: Mapping[str, Any]

    @property
    def claims(self) -> list[Record]:
        """What it claimed, as a record of each that were to end now."""
        before, after = self.before, self.after
        if not isinstance(after, Job):
            return []
        known = {hold.fence for hold in before.active} if isinstance(before, Job) else set()
        new = [hold for hold in after.active if hold.fence not in known]
        return [record_of(after, hold, Status.RUNNING, now=self.at) for hold in new]

    @property
    def jobs(self) -> tuple[Job, Job] | None:
        """Before and after, if it is about a job that was there and still is."""
        return (self.before, self.after) if isinstance(self.before, Job) and isinstance(self.after, Job) else None


class World:
    """The store: documents are kept as their JSON, swapped in one step, and the log is written in that same step."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.jobs: dict[str, Job] = {}
        self.sessions: dict[str, Session] = {}
        self.commits: list[Commit] = []
        self.tales: dict[Which, Tale] | None = None
        self.recorded: set[str] = set()
        """The slots and requests that the log knows."""

    def on_job(self, verb: str, name: str, change: Callable[[Job | Absent], Change | None], **asked: Any) -> Any:
        """Apply a transition to a job; the answer, or None if it was refused."""
        before = self.jobs.get(name)
        made = change(before or Absent(Kind.JOB, name))
        after = before if made is None else made.doc
        assert after is None or isinstance(after, Job)
        if after is not before:
            self.jobs.pop(name, None)
            if after is not None:
                kept = decode(Kind.JOB, name, *encode(after))
                assert isinstance(kept, Job)
                self.jobs[name] = after = kept
        return self._commit(verb, name, before, after, made, asked)

    def on_session(self, verb: str, name: str, change: Callable[[Session | Absent], Change | None]) -> bool:
        """Apply a transition to a session; whether it was accepted."""
        before = self.sessions.get(name)
        made = change(before or Absent(Kind.SESSION, name))
        after = before if made is None else made.doc
        assert isinstance(after, Session | None)
        if after is not None:
            self.sessions[name] = after
        self._commit(verb, name, before, after, made, {})
        return made is not None

    def live(self, session: str) -> bool:
        """Rule 1: a claim commits only if its session is live in that very step."""
        found = self.sessions.get(session)
        return found is not None and found.state is Life.LIVE

    def _commit(
        self,
        verb: str,
        name: str,
        before: Job | Session | None,
        after: Job | Session | None,
        made: Change | None,
        asked: Mapping[str, Any],
    ) -> Any:
        answer = None if made is None else made.answer
        records = () if made is None else made.records
        self.recorded.update(group_of(record.run) for record in records)
        self.tales = None
        self.commits.append(
            Commit(at=self.now, verb=verb, name=name, before=before, after=after, records=records,
                   accepted=made is not None, answer=answer, asked=asked)
        )  # fmt: skip
        return answer


# --- the books ------------------------------------------------------------------------------------------------------

Which = tuple[str, int, str]
"""A run: job, incarnation, and its slot or request."""


@dataclass(slots=True)
class Tale:
    """All that the commits say of one run."""

    opened: list[tuple[int, Commit]] = field(default_factory=list)
    closed: list[tuple[int, Commit]] = field(default_factory=list)
    passed: list[Record] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    held: int = 0
    most_held: int = 0
    over: bool = False
    claimed_when_over: bool = False
    waits: bool = True
    """At the end of the history: whether it is still waiting or held."""

    @property
    def started(self) -> int:
        """Attempts whose bodies may have started: all but those handed back."""
        handed_back = {attempt for attempt, commit in self.closed if commit.verb == "hand back"}
        return len([attempt for attempt, _ in self.opened if attempt not in handed_back])


def books(world: World) -> dict[Which, Tale]:
    """One pass over the commits: the tale of every run, scheduled or asked for; kept until the next commit."""
    if world.tales is not None:
        return world.tales
    tales: dict[Which, Tale] = defaultdict(Tale)
    for commit in world.commits:
        doc = commit.after if isinstance(commit.after, Job) else commit.before
        if not isinstance(doc, Job):
            continue
        touched: set[Which] = set()
        for record in (*commit.records, *commit.claims):
            for which in covered(doc, record, commit.before):
                touched.add(which)
                _note(tales[which], record, commit)
        for which in touched:
            tales[which].over = not (isinstance(commit.after, Job) and waiting(commit.after, which))
    for (name, incarnation, what), tale in tales.items():
        job = world.jobs.get(name)
        same = job is not None and job.incarnation == incarnation
        tale.waits = job is not None and same and waiting(job, (name, incarnation, what))
    world.tales = tales
    return tales


def _note(tale: Tale, record: Record, commit: Commit) -> None:
    if record.count == 1:
        tale.keys.add(record.key)
    if record.attempt == 0:
        tale.passed.append(record)
    elif record.status is Status.RUNNING:
        tale.claimed_when_over |= tale.over
        tale.opened.append((record.attempt, commit))
        tale.held += 1
        tale.most_held = max(tale.held, tale.most_held)
    else:
        tale.closed.append((record.attempt, commit))
        tale.held -= 1


def covered(job: Job, record: Record, before: Job | Session | None) -> Iterator[Which]:
    """The runs that a record is about: one, or every slot from its first to its last."""
    if record.origin is Origin.TRIGGER:
        yield job.name, job.incarnation, record.key
        return
    schedule = job.definition.schedule
    if isinstance(before, Job):
        schedule = before.definition.schedule
        for waiting_range in before.waiting_ranges:
            if (
                waiting_range.first == record.first
                and waiting_range.last == record.slot
                and waiting_range.schedule is not None
            ):
                schedule = waiting_range.schedule
    slots, slot = resolve(schedule), record.slot if record.first is None else record.first
    label = shard_of(record.run)
    for _ in range(record.count):
        yield job.name, job.incarnation, f"slot {slot}" if label is None else f"slot {slot}#{label}"
        slot = slots.after(slot) or slot


def _named(job: Job) -> list[Hold | WaitingRun]:
    return [*job.active, *(one for waiting_run in job.waiting_runs for one in each(waiting_run))]


def _labelled(what: object, one: Hold | WaitingRun) -> set[str]:
    """What a run is called here: with its shard (of a request by its name, of a slot by its number), and without."""
    label = one.shard if one.origin is Origin.TRIGGER else shard_of(one.run)
    return {f"{what}"} if label is None else {f"{what}", f"{what}#{label}"}


def waiting(job: Job, which: Which) -> bool:
    """Whether a run waits or held."""
    if job.incarnation != which[1]:
        return False
    what = which[2]
    if not what.startswith("slot "):
        asked = what.partition("!")[2]
        return any(asked in _labelled(one.request, one) for one in _named(job) if one.origin is Origin.TRIGGER)
    if any(what[5:] in _labelled(one.slot, one) for one in _named(job) if one.origin is Origin.SCHEDULE):
        return True
    if "#" in what:
        return False
    slot = int(what[5:])
    return any(
        waiting_range.first <= slot <= waiting_range.last
        and resolve(waiting_range.schedule or job.definition.schedule).count(slot - 1, slot)
        for waiting_range in job.waiting_ranges
    )
