"""The invariants, each a named function over the store's commits or over the bodies' own ledger.

Commits are checked as they happen, so that a failure points at the very step; what can only be said at the end
(nothing lost, nothing stuck) is said at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from solocron.clock import MILLISECOND, SECOND, iso
from solocron.model.change import Absent, Kind
from solocron.model.job import Hold, Job
from solocron.model.run import Op, Origin, Status
from solocron.model.session import Life, Session
from solocron.simulator.database import Commit
from solocron.simulator.ledger import Line

if TYPE_CHECKING:
    from solocron.simulator.world import World

__all__ = ["INVARIANTS", "Checker", "Violation"]


class Violation(AssertionError):
    """An invariant does not hold."""

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(f"{invariant}: {what}")
        self.invariant = invariant


@dataclass
class Checker:
    """Looks at everything that happens in one world."""

    world: World
    disabled: frozenset[str] = frozenset()
    checked: dict[str, int] = field(default_factory=dict)
    """How often each invariant was put to the test."""
    _fences: dict[str, int] = field(default_factory=dict)
    _claims: dict[tuple[str, int], int] = field(default_factory=dict)
    _attempts: dict[str, int] = field(default_factory=dict)
    _ended: dict[tuple[str, int], Status] = field(default_factory=dict)
    _granted: dict[tuple[str, int], tuple[float, str]] = field(default_factory=dict)
    _started: set[tuple[str, int]] = field(default_factory=set)

    def commit(self, commit: Commit) -> None:
        before, after = commit.before, commit.after
        if commit.kind is Kind.SESSION:
            self._run("I4 sessions", commit)
            return
        if commit.kind is not Kind.JOB or not (isinstance(before, Job) or isinstance(after, Job)):
            return
        for name in ("I3", "I2", "I1", "I9", "I4", "I6", "I11", "I5"):
            self._run(name, commit)
        for hold in _new_holds(commit):
            self._granted[(hold.run, hold.fence)] = (commit.at, hold.session)

    def line(self, line: Line) -> None:
        for name in ("I7", "I15", "I8"):
            if name not in self.disabled:
                self.checked[name] = self.checked.get(name, 0) + 1
                getattr(self, f"_{name.lower()}")(line)

    def _run(self, name: str, commit: Commit) -> None:
        if name.split()[0] in self.disabled:
            return
        self.checked[name] = self.checked.get(name, 0) + 1
        getattr(self, "_" + name.lower().replace(" ", "_"))(commit)

    # --- over commits --------------------------------------------------------------------------------------------

    def _i3(self, commit: Commit) -> None:
        """Fences of a job grow with every claim, over everything."""
        for hold in _new_holds(commit):
            seen = self._fences.get(commit.name, 0)
            if hold.fence <= seen:
                raise Violation("I3", f"{hold.run} was granted fence {hold.fence}, {seen} was granted before")
            self._fences[commit.name] = hold.fence

    def _i2(self, commit: Commit) -> None:
        """One claim per attempt, attempts one after the other, none after the last word."""
        for hold in _new_holds(commit):
            if (hold.run, hold.attempt) in self._claims:
                raise Violation("I2", f"{hold.run} attempt {hold.attempt} was claimed twice")
            self._claims[(hold.run, hold.attempt)] = hold.fence
            last = self._attempts.get(hold.run, 0)
            if hold.attempt != last + 1:
                raise Violation("I2", f"{hold.run} attempt {hold.attempt} after attempt {last}")
            self._attempts[hold.run] = hold.attempt
            if self._ended.get((hold.run, last)) is Status.SUCCEEDED:
                raise Violation("I2", f"{hold.run} was claimed again after it had succeeded")

    def _i1(self, commit: Commit) -> None:
        """At most one live claim of a slot; a claim is granted only to a live session."""
        if isinstance(commit.after, Job):
            runs = [hold.run for hold in commit.after.active]
            if len(runs) != len(set(runs)):
                raise Violation("I1", f"{commit.name} holds one run twice: {runs}")
        for hold in _new_holds(commit):
            session = self.world.database.docs.get((Kind.SESSION, hold.session))
            if session is None or not isinstance(session[0], Session) or session[0].state is not Life.LIVE:
                raise Violation("I1", f"{hold.run} was granted to session {hold.session}, which is not live")

    def _i9(self, commit: Commit) -> None:
        """Never more live claims than the job allows."""
        if isinstance(commit.after, Job) and _new_holds(commit):
            most = commit.after.definition.overlap.most
            if len(commit.after.active) > most:
                raise Violation("I9", f"{commit.name} has {len(commit.after.active)} live claims, {most} allowed")

    def _i4(self, commit: Commit) -> None:
        """What ends or notes an attempt shows the very fence that stands in the document."""
        for entry in commit.entries:
            if entry.op is Op.OPEN:
                continue
            record = entry.record
            if not isinstance(commit.before, Job) or commit.before.hold(record.run, record.fence) is None:
                raise Violation("I4", f"{record.run} fence {record.fence} was accepted, but is not held")

    def _i4_sessions(self, commit: Commit) -> None:
        """Burial is final: nothing renews a session that is not live."""
        before, after = commit.before, commit.after
        if isinstance(after, Session) and after.state is Life.LIVE:
            if isinstance(before, Session) and before.state is not Life.LIVE:
                raise Violation("I4", f"session {after.name} was renewed after its burial")
            if isinstance(before, Absent) and after.started_at != after.expires_at - after.lease:
                raise Violation("I4", f"session {after.name} was created by a renewal")

    def _i6(self, commit: Commit) -> None:
        """Each attempt ends once."""
        for entry in commit.entries:
            key = (entry.record.run, entry.record.attempt)
            if entry.op is Op.CLOSE or (entry.op is Op.OPEN and entry.record.status is not Status.RUNNING):
                if key in self._ended:
                    raise Violation("I6", f"{key[0]} attempt {key[1]} ended twice")
                self._ended[key] = entry.record.status

    def _i11(self, commit: Commit) -> None:
        """The cursor never goes back."""
        before, after = commit.before, commit.after
        if not isinstance(before, Job) or not isinstance(after, Job) or after.incarnation != before.incarnation:
            return
        if after.cursor < before.cursor:
            raise Violation("I11", f"{commit.name}: the cursor went back to {iso(after.cursor)}")

    def _i5(self, commit: Commit) -> None:
        """No slot vanishes: every one that the cursor passed is owed, held, or on record; retries are owed."""
        before, after = commit.before, commit.after
        if not isinstance(before, Job) or (isinstance(after, Job) and after.incarnation != before.incarnation):
            return
        if isinstance(after, Job):
            slots = self.world.resolve(before.definition.schedule)
            since = slots.settled(before.cursor, before.nominal)
            passed = slots.count(since, after.cursor) if after.cursor > since else 0
            opened = [e.record for e in commit.entries if e.op is Op.OPEN and e.record.origin is Origin.SCHEDULE]
            recorded = sum(record.count for record in opened if record.attempt == 0)
            started = sum(1 for h in _new_holds(commit) if h.attempt == 1 and h.origin is Origin.SCHEDULE)
            if _first_owed(before) + passed != _first_owed(after) + recorded + started:
                raise Violation(
                    "I5",
                    f"{commit.name}: {passed} slots passed with {_first_owed(before)} owed, and then there are "
                    f"{_first_owed(after)} owed, {recorded} recorded and {started} started",
                )
        for entry in commit.entries:
            if entry.op is Op.CLOSE and isinstance(after, Job):
                self._owed_again(before, after, entry.record.run, entry.record.fence, entry.record.status)

    def _owed_again(self, before: Job, after: Job, run: str, fence: int, status: Status) -> None:
        hold = before.hold(run, fence)
        if hold is None or hold.cancel is not None or hold.tries >= before.definition.retries:
            return
        due = status in (Status.FAILED, Status.TIMED_OUT) or (
            status is Status.LOST and before.definition.on_crash == "retry"
        )
        if due and not any(owed.run == run and owed.attempt == hold.attempt + 1 for owed in after.owed):
            raise Violation("I5", f"{run} ended {status} with retries left, but its next attempt is not owed")

    # --- over the ledger -----------------------------------------------------------------------------------------

    def _i7(self, line: Line) -> None:
        """Nothing starts without a claim that the store has granted; no claim starts twice."""
        if line.what != "start":
            return
        if (line.run, line.fence) not in self._granted:
            raise Violation("I7", f"{line.run} fence {line.fence} started on {line.process.name} without a claim")
        if (line.run, line.fence) in self._started:
            raise Violation("I7", f"{line.run} fence {line.fence} started twice")
        self._started.add((line.run, line.fence))

    def _i15(self, line: Line) -> None:
        """Nothing starts before its slot."""
        if line.what == "start" and line.store + MILLISECOND < line.slot:
            raise Violation("I15", f"{line.run} started {(line.slot - line.store) / SECOND:.3f} s early")

    def _i8(self, line: Line) -> None:
        """A body that can be stopped does nothing after its node's lease is over, unless the node was frozen."""
        granted = self._granted.get((line.run, line.fence))
        if granted is None or not line.stoppable:
            return
        member = self.world.member_of(line.process)
        confirmed = member.store.last_confirmed.get(granted[1])
        if confirmed is None or line.process.was_frozen(confirmed, line.at):
            return
        if (line.at - confirmed) * member.runtime.clock.rate > self.world.options.lease + 0.001:
            raise Violation(
                "I8", f"{line.run} still worked {line.at - confirmed:.3f} s after the last confirmed renewal was sent"
            )

    # --- at the end ----------------------------------------------------------------------------------------------

    def at_rest(self, patience: float) -> None:
        """After the faults have ended and time has passed: nothing is stuck, nothing owed is left lying (I5, I14)."""
        if "I14" in self.disabled:
            return
        self.checked["I14"] = self.checked.get("I14", 0) + 1
        now = self.world.database.clock()
        long_ago = now - round(patience * SECOND)
        live = {
            name
            for (kind, name), (doc, _) in self.world.database.docs.items()
            if kind is Kind.SESSION and isinstance(doc, Session) and doc.state is Life.LIVE
        }
        for doc, _ in self.world.database.docs.values():
            if not isinstance(doc, Job):
                continue
            for hold in doc.active:
                if hold.claimed_at < long_ago or hold.session not in live:
                    raise Violation("I14", f"{hold.run} of {hold.node} is still held, since {iso(hold.claimed_at)}")
            if doc.due_at is not None and doc.due_at < long_ago:
                raise Violation("I14", f"{doc.name} has been due since {iso(doc.due_at)} and nobody decides it")
            if doc.waiting and doc.paused is None:
                oldest = min([owed.ready_at for owed in doc.owed] + [s.first for s in doc.stretches])
                if oldest < long_ago:
                    raise Violation("I5", f"{doc.name} owes a run since {iso(oldest)}")

    def drained(self) -> None:
        """After every node has drained: no live claim, nothing running in the log (I21)."""
        if "I21" in self.disabled:
            return
        self.checked["I21"] = self.checked.get("I21", 0) + 1
        for doc, _ in self.world.database.docs.values():
            if isinstance(doc, Job) and doc.active:
                raise Violation("I21", f"{doc.name} is still held after every node has drained: {doc.active[0].run}")
        for record in self.world.database.log.values():
            if record.status is Status.RUNNING:
                raise Violation("I21", f"{record.run} attempt {record.attempt} is on record as running for ever")


def _new_holds(commit: Commit) -> list[Hold]:
    if not isinstance(commit.after, Job):
        return []
    known = {(h.run, h.fence) for h in commit.before.active} if isinstance(commit.before, Job) else set()
    return [hold for hold in commit.after.active if (hold.run, hold.fence) not in known]


def _first_owed(job: Job) -> int:
    """Scheduled slots that wait for their first attempt."""
    singles = sum(1 for owed in job.owed if owed.attempt == 1 and owed.origin is Origin.SCHEDULE)
    return singles + sum(stretch.count for stretch in job.stretches if stretch.origin is Origin.SCHEDULE)


INVARIANTS = ("I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I11", "I12", "I14", "I15", "I21")
