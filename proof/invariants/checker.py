"""Put every commit of the store and every line of the bodies' ledger to the test, and the world once it is quiescent.

Commits are checked as they happen, so that a failure points at the very step. Each invariant is a named function in
`commits`, `ledger`, `policies`, `calendars` or `quiescence`. The checker counts how often each was put to the test,
because one that never was proves nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from proof.oracles.slots import slots_of
from proof.oracles.workdays import Slots
from proof.workloads.ledger import Line
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Origin, Record, Status
from solocron.model.documents.session import Life, Session
from solocron.testing.simulation.database import Commit

if TYPE_CHECKING:
    from proof.simulator.world import World

__all__ = ["Checker", "Violation", "first_waiting", "new_holds"]


_NOTHING: list[Hold] = []


class Violation(AssertionError):
    """An invariant does not hold."""

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(f"{invariant}: {what}")
        self.invariant = invariant


class Tests:
    """Invariants that are put to the test by the same kind of thing."""

    __test__ = False

    def __init__(self, table: dict[str, Callable[..., None]], disabled: frozenset[str]) -> None:
        chosen = {name: test for name, test in table.items() if name.split("_")[0].upper() not in disabled}
        self.names = tuple(chosen)
        self.times = 0
        self._tests = tuple(chosen.values())

    def __call__(self, checker: Checker, *what: object) -> None:
        self.times += 1
        for test in self._tests:
            test(checker, *what)


@dataclass
class Checker:
    """Looks at everything that happens in one world, and remembers what it needs to judge the next thing."""

    world: World
    disabled: frozenset[str] = frozenset()
    fences: dict[str, int] = field(default_factory=dict)
    """The highest fence granted so far, by job."""
    attempts: dict[str, int] = field(default_factory=dict)
    """The last attempt that was claimed, by run."""
    ended: dict[tuple[str, int], Status] = field(default_factory=dict)
    granted: dict[tuple[str, int], Hold] = field(default_factory=dict)
    granted_at: dict[tuple[str, int], int] = field(default_factory=dict)
    """The store's time at which each claim was committed."""
    latest: int = 0
    """The latest time that the store's clock has shown."""
    started: dict[tuple[str, int], str] = field(default_factory=dict)
    """The session under which each claim started last, by run and fence."""
    given_up: set[str] = field(default_factory=set)
    """Sessions that their own nodes have ended before their leases were over."""
    paced: dict[str, int] = field(default_factory=dict)
    """The store's time at which a missed slot of a job with a rate was last claimed."""
    answered: dict[tuple[str, int], str] = field(default_factory=dict)
    """Answers of on_retry before an attempt, by run and fence."""
    starts: Counter[str] = field(default_factory=Counter)
    """Bodies that started, by run."""
    keys: dict[str, str] = field(default_factory=dict)
    """Idempotency keys, by run."""
    key_of: dict[str, str] = field(default_factory=dict)
    """Runs of the schedule, by idempotency key."""
    renewed: dict[str, float] = field(default_factory=dict)
    """Time of the last renewal of each session in the store, in the world's own time."""
    asked: dict[tuple[str, str | None], None] = field(default_factory=dict)
    """Requests that the store has seen, by job."""
    triggered: dict[tuple[str, int, str | None], str] = field(default_factory=dict)
    """The run that each of them became, by job, incarnation and request."""
    cut: set[str] = field(default_factory=set)
    """Slots and requests that were cut into shards."""
    recorded: Counter[str] = field(default_factory=Counter)
    """Slots and runs on record so far, by status."""
    slots: int = 0
    moved: int = 0
    """Claims of slots that a calendar had moved."""
    left_out: int = 0
    """Slots that a calendar left out."""
    revised: int = 0
    """Jobs that were put under a later revision."""
    written: dict[str, float] = field(default_factory=dict)
    """Time of the last write of each calendar, and of the definition of each job under one."""
    _known: dict[str, Slots | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from proof.invariants import calendars, commits, hand_over, ledger, pauses, policies, quiescence

        self._check_fences, self._without_publishing = hand_over.check_fences, hand_over.without_publishing
        self._calendared = bool(self.world.options.calendars)
        self._on_calendared = Tests(calendars.JOBS, self.disabled)
        self._on_calendar = Tests(calendars.CALENDARS, self.disabled)
        self._calendars_quiescent = Tests(calendars.QUIESCENCE, self.disabled)
        self._calendar_of = calendars.calendar_of
        self._on_job = Tests(commits.JOBS | policies.POLICIES | pauses.JOBS | hand_over.JOBS, self.disabled)
        self._on_session = Tests(commits.SESSIONS, self.disabled)
        self._on_line = Tests(ledger.LINES | policies.LINES, self.disabled)
        self._quiescent = Tests(quiescence.QUIESCENCE, self.disabled)
        self._drained = Tests(quiescence.DRAINED, self.disabled)
        self._on_prune = Tests(commits.PRUNES, self.disabled)

    @property
    def checked(self) -> Counter[str]:
        """Return how often each invariant was put to the test."""
        groups = (
            *(self._on_job, self._on_session, self._on_line, self._quiescent, self._drained, self._on_prune),
            *(self._on_calendared, self._on_calendar, self._calendars_quiescent),
        )
        return Counter({name: group.times for group in groups for name in group.names})

    # --- what happens --------------------------------------------------------------------------------------------

    def commit(self, commit: Commit) -> None:
        self.latest = max(self.latest, commit.now)
        if commit.kind is Kind.SESSION:
            self._on_session(self, commit)
            before, after = commit.before, commit.after
            if isinstance(after, Session) and after.state is Life.LIVE:
                self.renewed[commit.name] = commit.selected
            elif isinstance(before, Session) and commit.client == before.node and commit.now < before.expires_at:
                self.given_up.add(commit.name)
        elif commit.kind is Kind.JOB and (isinstance(commit.before, Job) or isinstance(commit.after, Job)):
            self._check_fences(self, commit)
            commit = self._without_publishing(commit)
            self._on_job(self, commit)
            if self._calendared and (self._calendar_of(commit.before) or self._calendar_of(commit.after)):
                self._on_calendared(self, commit)
            self._note(commit)
        elif commit.kind is Kind.CALENDAR:
            self._on_calendar(self, commit)

    def line(self, line: Line) -> None:
        self._on_line(self, line)
        if line.what.startswith("answered "):
            self.answered[(line.run, line.fence)] = line.what.removeprefix("answered ")
        if line.what == "start":
            self.started[line.run, line.fence] = self.granted[line.run, line.fence].session
            self.starts[line.run] += 1

    def pruned(self, record: Record, before: int) -> None:
        self._on_prune(self, record, before)

    def check_quiescence(self, patience: float) -> None:
        """After the faults have ended and time has passed."""
        self._quiescent(self, patience)
        if self._calendared:
            self._calendars_quiescent(self, patience)

    def drained(self) -> None:
        """After every node has drained."""
        self._drained(self)

    # --- what is remembered --------------------------------------------------------------------------------------

    def _note(self, commit: Commit) -> None:
        for hold in new_holds(commit):
            self.fences[commit.name] = hold.fence
            self.attempts[hold.run] = hold.attempt
            self.granted[(hold.run, hold.fence)] = hold
            self.granted_at[(hold.run, hold.fence)] = max(commit.now, commit.decided)  # the clock may step in between
        for record in commit.records:
            self.ended[(record.run, record.attempt)] = record.status
            self.recorded[record.status] += record.count
            if record.attempt <= 1 and record.origin is Origin.SCHEDULE:
                self.slots += record.count

    def slots_of(self, schedule: Mapping[str, Any] | None) -> Slots | None:
        """Return the slots of a schedule, counted by hand."""
        return slots_of(schedule, self._known, self._revision)

    def _revision(self, calendar: str, revision: int) -> Mapping[str, Any]:
        """Return the revision of this number; it never changes, which is checked."""
        doc, _ = self.world.database.docs[(Kind.CALENDAR, f"{calendar}@{revision}")]
        assert isinstance(doc, SmallDocument)
        return doc.body


def new_holds(commit: Commit) -> list[Hold]:
    """Return the holds that a commit granted."""
    before, after = commit.before, commit.after
    if not isinstance(after, Job) or not after.active:
        return _NOTHING
    if not isinstance(before, Job):
        return list(after.active)
    if after.active is before.active:
        return _NOTHING
    known = {(h.run, h.fence) for h in before.active}
    return [hold for hold in after.active if (hold.run, hold.fence) not in known]


def first_waiting(job: Job) -> int:
    """Scheduled slots that wait to begin; one that was handed back has not begun, one that was cut has."""
    singles = sum(
        1
        for waiting_run in job.waiting_runs
        if not waiting_run.tries and waiting_run.origin is Origin.SCHEDULE and "#" not in waiting_run.run
    )
    return singles + sum(
        waiting_range.count for waiting_range in job.waiting_ranges if waiting_range.origin is Origin.SCHEDULE
    )
