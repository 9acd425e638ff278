"""One job's document, a store's clock and a log, without a store: only what the machine itself decides.

Times are seconds after `T0`, a round hour, so that `every 1m` has its slots at 60, 120, 180 and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from solocron.clock import SECOND, to_us
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents import scoped_pause
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Record, Status
from solocron.model.documents.scoped_pause import Reach, Scope, ScopedPause
from solocron.model.policy import CatchUp, Overlap
from solocron.model.timetable import EMPTY, Resolve, Timetable
from solocron.model.transitions import claiming, commands, finishing, offering, registration
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import Later, Needs
from solocron.model.transitions.finishing import Outcome
from solocron.model.transitions.offering import Dropped, Handed, NotPickedUp
from solocron.schedules import Every, Schedule, dump, load

__all__ = ["BEAT", "LATE_FOR", "LEASE", "T0", "OneJob", "definition", "resolve", "seconds"]

T0 = to_us(datetime(2026, 1, 5, tzinfo=UTC))
LEASE, BEAT = 15, 5
LATE_FOR = LEASE + 2 * BEAT
"""Seconds for which a slot is late before it is missed."""

CARRIERS = {"queue": True, "post": False}
"""What the nodes can publish with: workers pick up from the queue, and nothing is heard again of what is posted."""


def seconds(us: int) -> float:
    """An instant as seconds after T0."""
    return (us - T0) / SECOND


def resolve(spec: Mapping[str, Any] | None) -> Timetable:
    """The slots of a stored schedule; one of the user's own classes is known to nodes with its code alone."""
    if spec is None:
        return EMPTY
    schedule = load(spec)
    return Timetable(schedule, known=schedule is not None)


def definition(schedule: Schedule | str | None = "1m", **options: Any) -> Definition:
    """A definition as a decorator makes it: a text is a period, durations are in seconds."""
    for name, parse in (("overlap", Overlap.parse), ("catch_up", CatchUp.parse)):
        if name in options:
            options[name] = parse(options[name])
    for name in ("timeout", "start_within"):
        if options.get(name) is not None:
            options[name] = round(options[name] * SECOND)
    found = Every(schedule) if isinstance(schedule, str) else schedule
    return Definition(handler="work", schedule=None if found is None else dump(found), **options)


class OneJob:
    """The job `work` as a store would keep it; each verb applies one transition at the clock's time."""

    def __init__(self, schedule: Schedule | str | None = "1m", *, by: Resolve = resolve, **options: Any) -> None:
        self.now = T0
        self.by = by
        self.doc: Job | Absent = Absent(Kind.JOB, "work")
        self.log: dict[tuple[str, int], Record] = {}
        self.pauses: tuple[ScopedPause, ...] = ()
        """Pauses of many jobs at once, as the namespace's document lists them."""
        self.define(schedule, **options)

    @property
    def job(self) -> Job:
        """The document, which must be there."""
        assert isinstance(self.doc, Job)
        return self.doc

    def at(self, after: float) -> OneJob:
        """Set the store's clock to that many seconds after T0."""
        self.now = T0 + round(after * SECOND)
        return self

    # --- what nodes do ---------------------------------------------------------------------------------------------

    def claim(self, node: str = "a") -> Hold | Needs | Later | None:
        """Decide what is due and take one run; None when there is none to take."""
        who = self._claimant(node, carriers=CARRIERS)
        answer: Hold | Needs | Later | None = self.apply(
            lambda doc: claiming.claim(doc, now=self.now, by=who, resolve=self.by)
        )
        return answer

    def _claimant(self, node: str, **more: Any) -> Claimant:
        return Claimant(session=f"session of {node}", node=node, late_for=LATE_FOR * SECOND, pauses=self.pauses, **more)

    def claims(self, node: str = "a") -> Hold:
        """Claim, and be sure to get a run."""
        hold = self.claim(node)
        assert isinstance(hold, Hold), f"nothing to claim: {hold}"
        return hold

    def finish(self, hold: Hold, outcome: Outcome | None = None) -> str | None:
        """End an attempt; None says that the write was stale."""
        how = outcome or Outcome.succeeded()
        answer: str | None = self.apply(
            lambda doc: finishing.finish(
                doc, run=hold.run, fence=hold.fence, outcome=how, now=self.now, resolve=self.by
            )
        )
        return answer

    def fail(self, hold: Hold) -> str | None:
        return self.finish(hold, Outcome.failed("it broke"))

    def hand_back(self, hold: Hold, reason: str = "the node drains") -> str | None:
        answer: str | None = self.apply(
            lambda doc: finishing.hand_back(
                doc, run=hold.run, fence=hold.fence, now=self.now, reason=reason, resolve=self.by
            )
        )
        return answer

    def hand_over(self, hold: Hold, pickup: float = 300) -> Handed | None:
        """The message of a claim is published, and the claim becomes an offer."""
        answer: Handed | None = self.apply(
            lambda doc: offering.hand_over(
                doc, run=hold.run, fence=hold.fence, pickup=round(pickup * SECOND), now=self.now, resolve=self.by
            )
        )
        return answer

    def put_back(self, hold: Hold, wait: float = 1, note: str | None = None) -> Handed | None:
        """The message of a claim could not be published."""
        answer: Handed | None = self.apply(
            lambda doc: offering.put_back(
                doc, run=hold.run, fence=hold.fence, wait=round(wait * SECOND), note=note, now=self.now, resolve=self.by
            )
        )
        return answer

    def pick_up(self, of: Hold, worker: str = "w", *, has: bool = True) -> Hold | Dropped | None:
        """A message arrives at a worker: the hold, or why it starts nothing."""
        who = self._claimant(worker, has=lambda handler: has)
        answer = self.apply(
            lambda doc: offering.pick_up(doc, run=of.run, attempt=of.attempt, now=self.now, by=who, resolve=self.by)
        )
        return answer.why if isinstance(answer, NotPickedUp) else answer

    def picks_up(self, of: Hold, worker: str = "w") -> Hold:
        """Pick a message up, and be sure to get the run."""
        hold = self.pick_up(of, worker)
        assert isinstance(hold, Hold), f"not picked up: {hold}"
        return hold

    def take_over(self, node: str = "a") -> str | None:
        """The session of a node was buried: end whatever it held."""
        answer: str | None = self.apply(
            lambda doc: finishing.take_over(
                doc, session=f"session of {node}", now=self.now, reason="its session was buried", resolve=self.by
            )
        )
        return answer

    def run_all(self, node: str = "a") -> list[float]:
        """Claim and finish until nothing is left to run now; the slots that ran, in order."""
        ran = []
        while isinstance(hold := self.claim(node), Hold):
            ran.append(seconds(hold.slot))
            self.finish(hold)
        return ran

    # --- what people do --------------------------------------------------------------------------------------------

    def trigger(
        self,
        request: str = "r1",
        *,
        payload: Any = None,
        at: float | None = None,
        shard: int | str | None = None,
    ) -> str | None:
        when = None if at is None else T0 + round(at * SECOND)
        answer: str | None = self.apply(
            lambda doc: commands.trigger(
                doc, request=request, payload=payload, at=when, now=self.now, resolve=self.by, shard=shard
            )
        )
        return answer

    def cancel(self, run: str, reason: str = "a person asked") -> str | None:
        answer: str | None = self.apply(
            lambda doc: commands.cancel(doc, run=run, reason=reason, now=self.now, resolve=self.by)
        )
        return answer

    def pause(self, *, until: float | None = None, note: str | None = None, by: str | None = None) -> str | None:
        end = None if until is None else T0 + round(until * SECOND)
        late_for = LATE_FOR * SECOND
        answer: str | None = self.apply(
            lambda doc: commands.pause(
                doc, by=by, note=note, until=end, now=self.now, late_for=late_for, resolve=self.by, pauses=self.pauses
            )
        )
        return answer

    def pause_many(self, reach: str = "all", value: str = "", *, until: float | None = None, **more: Any) -> None:
        """Pause all jobs, a pool or the names that match, as the namespace's document lists it."""
        end = None if until is None else T0 + round(until * SECOND)
        wanted = ScopedPause(scope=Scope(Reach(reach), value), at=0, until=end, **more)
        pauses = scoped_pause.begin(self.pauses, wanted, now=self.now)
        assert pauses is not None
        self.pauses = pauses

    def lift(self, reach: str = "all", value: str = "") -> None:
        lifted = scoped_pause.lift(self.pauses, Scope(Reach(reach), value), by=None, now=self.now)
        assert lifted is not None
        self.pauses = lifted[0]

    def resume(self) -> str | None:
        answer: str | None = self.apply(lambda doc: commands.resume(doc, now=self.now, resolve=self.by))
        return answer

    def define(self, schedule: Schedule | str | None = "1m", **options: Any) -> str | None:
        """Make the job what is given here; options that are left out have their defaults."""
        return self.propose(registration.Proposal(definition=definition(schedule, **options), source=None))

    def propose(self, proposal: registration.Proposal) -> str | None:
        answer: str | None = self.apply(
            lambda doc: registration.define(
                doc, proposal=proposal, now=self.now, late_for=LATE_FOR * SECOND, resolve=self.by, pauses=self.pauses
            )
        )
        return answer

    def remove(self) -> str | None:
        answer: str | None = self.apply(
            lambda doc: registration.remove(
                doc, now=self.now, late_for=LATE_FOR * SECOND, resolve=self.by, pauses=self.pauses
            )
        )
        return answer

    # --- what a store does -----------------------------------------------------------------------------------------

    def apply(self, transition: Callable[[Job | Absent], Change | None]) -> Any:
        """Swap the document and write the log in one step, as a store does; the answer, or None if refused."""
        change = transition(self.doc)
        if change is None:
            return None
        assert change.doc is None or isinstance(change.doc, Job)
        self.doc = Absent(Kind.JOB, "work") if change.doc is None else change.doc
        for record in change.records:
            where = (record.run, record.attempt)
            assert where not in self.log, f"{where} is on record already"
            assert record.status is not Status.RUNNING, f"{where} has not ended"
            self.log[where] = record
        return change.answer

    # --- what can be read ------------------------------------------------------------------------------------------

    def ended(self) -> list[tuple[float, str]]:
        """What became of each slot: (slot, status), in the order in which it was recorded; summaries by their last."""
        return [(seconds(record.slot), str(record.status)) for record in self.log.values()]

    def records(self, status: str) -> list[Record]:
        """The records of one status."""
        return [record for record in self.log.values() if record.status == status]

    def reasons(self, status: str) -> list[str | None]:
        return [record.reason for record in self.records(status)]

    def covered(self, status: str) -> list[tuple[float, float, int]]:
        """The records of one status as (first slot, last slot, how many)."""
        found = []
        for record in self.records(status):
            first = record.slot if record.first is None else record.first
            found.append((seconds(first), seconds(record.slot), record.count))
        return found
