"""One pass over what is due: claim it, start it, then fetch what the rest needs and claim that too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from solocron.engine.attempts import Attempts
from solocron.engine.memory import Memory
from solocron.engine.namespace_gate import NamespaceGate
from solocron.engine.node_context import NodeContext
from solocron.engine.requirements import Requirements
from solocron.engine.runner import Runner
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Origin, Record
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import Later, Needs, claim
from solocron.stores.contract import Applied, Gate, Named, Result, Verdict

__all__ = ["ClaimPass", "Claimed", "LeftAlone", "Starter"]

PERMIT_POLL = 1.0
"""Seconds after which a job that waits for a permit is tried again, if no notification came before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """Result of a pass: the store's reply, its boot time, and how many bodies were started."""

    applied: Applied
    replied: float
    started: int
    fetched: bool
    """True if a job was left alone only because its calendar had to be fetched first: the next pass can claim it."""

    @property
    def refused(self) -> bool:
        """True if the commit found the session dead or the namespace shut."""
        return not self.applied.alive or self.applied.shut

    def decided(self) -> int:
        """Number of jobs decided, whether or not a body was started for them."""
        return sum(
            result.verdict is Verdict.APPLIED and not isinstance(result.answer, Later | Needs)
            for result in self.applied.results
        )


class LeftAlone:
    """Jobs that this node leaves to others for a while, by the boot time at which it tries them again."""

    def __init__(self) -> None:
        self._undecidable: dict[str, float] = {}
        self._turns: dict[str, float] = {}

    def undecidable(self, job: str, until: float) -> None:
        """Leave a job alone that this node cannot decide: it must not head every batch."""
        self._undecidable[job] = until

    def turn(self, job: str, until: float) -> None:
        """Leave a job to other nodes until this node's turn comes."""
        self._turns[job] = until

    def forget_turns(self) -> None:
        self._turns.clear()

    def forget_undecidable(self) -> None:
        self._undecidable.clear()

    def names(self, now: float) -> frozenset[str]:
        """Return the jobs to leave alone now, and forget those whose time is over."""
        self._undecidable = {name: until for name, until in self._undecidable.items() if until > now}
        self._turns = {name: until for name, until in self._turns.items() if until > now}
        return frozenset((*self._undecidable, *self._turns))

    def __contains__(self, job: object) -> bool:
        return job in self._turns or job in self._undecidable

    def latest(self, otherwise: float) -> float:
        """Boot time at which the first turn comes, or the given one if that is sooner."""
        return min((*self._turns.values(), otherwise))


class _BackfillShare:
    """Number of backfills that one pass may begin: a quarter of the node's places, so that live jobs find one free."""

    def __init__(self, most: int, running: int) -> None:
        self._left = most - running
        self._taken: set[str] = set()

    def spare(self, job: str) -> bool:
        return len(self._taken) - (job in self._taken) < self._left

    def note(self, job: str, change: Change | None) -> None:
        """Record the latest answer for a job: a store may call a change again for the same document."""
        hold = None if change is None else change.answer
        if isinstance(hold, Hold) and hold.origin is Origin.BACKFILL:
            self._taken.add(job)
        else:
            self._taken.discard(job)


class Starter:
    """Starts the bodies of acknowledged claims."""

    def __init__(self, context: NodeContext, memory: Memory, runner: Runner) -> None:
        self._context = context
        self._memory = memory
        self._runner = runner

    def remembers(self, key: tuple[str, int]) -> bool:
        """Return whether this process has had a claim before; a store that went back shows it as held once more."""
        return self._memory.knows(key)

    def start(self, results: Iterable[Result], session: str, epoch: str) -> int:
        """Start every claim among the results; return how many bodies were started."""
        claims = [
            (result.doc, result.answer)
            for result in results
            if result.verdict is Verdict.APPLIED and isinstance(result.answer, Hold) and isinstance(result.doc, Job)
        ]
        # A claim that is acknowledged after this node has begun to check another epoch may be lost already.
        if not claims or not self._memory.claimed(epoch, claims):
            return 0
        events, node, started = self._context.events, self._context.settings.node, 0
        for job, hold in claims:
            events.emit(
                "claimed", job=job.name, run=hold.run, slot=hold.slot, attempt=hold.attempt, fence=hold.fence, node=node
            )
            started += self._runner.start(job, hold, session)
        return started


class ClaimPass:
    """Claims for one node. Each claim that a pass brings is started before the pass returns."""

    def __init__(
        self,
        context: NodeContext,
        attempts: Attempts,
        gate: NamespaceGate,
        requirements: Requirements,
        starter: Starter,
    ) -> None:
        self._context = context
        self._attempts = attempts
        self._gate = gate
        self._requirements = requirements
        self._starter = starter
        self.left_alone = LeftAlone()
        self._backfills = _BackfillShare(most=1, running=0)
        self._passing: dict[str, tuple[Record, ...]] = {}
        """Slots that the call under way passes over, by job."""
        self._fetched = False

    def run(self, session: str, limit: int, asked: float, only: str | None = None) -> Claimed:
        """Claim up to `limit` due jobs and start them; with `only`, that one job."""
        context, attempts = self._context, self._attempts
        self._fetched = False
        epoch, gate, pauses = self._gate.for_claims()
        by = self._requirements.claimant(session, alone=context.signals.claim.alone, pauses=pauses)
        most = max(1, context.settings.max_running // 4)
        self._backfills = _BackfillShare(most=most, running=attempts.running_of(Origin.BACKFILL))
        left_alone = self.left_alone.names(context.runtime.clock.boot())
        due = self._requirements.selection(limit, attempts.excluded() | left_alone, only)
        call = attempts.call_begins()
        context.runtime.failpoint("claiming")
        try:
            applied = context.store.update(due, lambda doc, at: self._change(doc, at, by), session=session, gate=gate)
            replied = context.runtime.clock.boot()
            attempts.lease.observe(applied.now, asked=asked, replied=replied)
            started = 0
            more = applied.next_due is not None and applied.next_due <= applied.now
            context.signals.note_backlog(more and 0 < limit <= len(applied.results))
            self._report_passed(applied.results)
            if applied.alive:  # start what was claimed before anything is fetched for the others
                needy = tuple(result for result in applied.results if isinstance(result.answer, Needs))
                first = [result for result in applied.results if result not in needy] if needy else applied.results
                started = self._take(first, session, epoch, replied)
                if needy:
                    applied = self._claim_with_needs(applied, by, session, gate)
                    names = {result.name for result in needy}
                    # Declined by now: another node was faster, and there is nothing to do here for the moment.
                    brought = [r for r in applied.results if r.name in names and r.verdict is not Verdict.DECLINED]
                    self._report_passed(brought)
                    started += self._take(brought, session, epoch, context.runtime.clock.boot())
        finally:
            # Not before each claim is in the table: the keeper would take them for claims whose reply was lost. An
            # unknown outcome counts as not held; if the claim did land, the keeper's next look finds it.
            attempts.call_ends(call)
        claimed = Claimed(applied=applied, replied=replied, started=started, fetched=self._fetched)
        if claimed.refused:
            # Buried, or the store went back, perhaps to before the session began: the keeper finds out which.
            self._gate.shut()
            context.signals.keep.wake()
        return claimed

    def _claim_with_needs(self, applied: Applied, by: Claimant, session: str, gate: Gate) -> Applied:
        """Fetch what some of the jobs need (the sessions, a permit) and claim those again by name."""
        claimants: dict[str, Claimant] = {}
        for _ in range(3):  # the sessions, then a permit, and once more if a deploy changed the job meanwhile
            needy = {r.name: r.answer for r in applied.results if isinstance(r.answer, Needs)}
            equipped = self._requirements.equip(needy, claimants, by) if applied.alive else {}
            if not equipped:
                return applied
            claimants |= equipped
            again = self._claim_again(equipped, session, gate)
            self._requirements.use(again, equipped, session)
            self._report_passed(again.results)
            results = {result.name: result for result in (*applied.results, *again.results)}
            applied = replace(
                applied,
                results=tuple(results.values()),
                now=again.now or applied.now,
                alive=again.alive,
                shut=again.shut,
            )
        return applied

    def _claim_again(self, equipped: Mapping[str, Claimant], session: str, gate: Gate) -> Applied:
        try:
            return self._context.store.update(
                Named(Kind.JOB, tuple(sorted(equipped))),
                lambda doc, at: self._change(doc, at, equipped[doc.name]),
                session=session,
                gate=gate,
            )
        except BaseException:
            self._requirements.doubt(equipped)
            raise

    def _change(self, doc: Job | Absent, now: int, by: Claimant) -> Change | None:
        """Claim; a node that has no place left for a backfill leaves backfills alone."""
        by = by if self._backfills.spare(doc.name) else replace(by, spare=False)
        change = claim(doc, now=now, by=by, resolve=self._context.resolve)
        self._backfills.note(doc.name, change)
        if change is not None and change.records:
            self._passing[doc.name] = tuple(record for record in change.records if not record.attempt)
        else:
            self._passing.pop(doc.name, None)  # of several calls for one document the last one counts
        return change

    def _take(self, results: Iterable[Result], session: str, epoch: str, replied: float) -> int:
        """Start what was claimed; record the rest, and until when this node leaves it alone."""
        results = tuple(results)
        started = self._starter.start(results, session, epoch)
        beat, events = self._context.settings.beat, self._context.events
        for result in results:
            if result.verdict is Verdict.APPLIED and isinstance(result.doc, Job):
                if isinstance(result.answer, Later):
                    at = self._attempts.lease.boot_of(result.answer.until)
                    self.left_alone.turn(result.name, replied + beat if at is None else min(at, replied + beat))
                    self._requirements.undecided(result.doc)
                elif isinstance(result.answer, Needs):  # no permit is free; a release may come without a notification
                    self.left_alone.turn(result.name, replied + PERMIT_POLL)
            elif result.verdict is Verdict.BLOCKED:
                events.emit("job blocked", job=result.name, error=result.error)
            elif result.verdict is Verdict.DECLINED and self._requirements.calendar_fetched(result.doc):
                self._fetched = True
            elif result.verdict is Verdict.DECLINED:
                self.left_alone.undecidable(result.name, replied + beat)
                if isinstance(result.doc, Job):
                    self._requirements.undecided(result.doc)
            else:  # contended, or unknown and then not ours until the store shows it
                events.emit("held elsewhere", job=result.name, node=self._context.settings.node)
        return started

    def _report_passed(self, results: Iterable[Result]) -> None:
        """Emit the slots that the accepted claims have passed over, with the reasons."""
        passing, self._passing = self._passing, {}
        for result in results if passing else ():
            handler = result.doc.definition.handler if isinstance(result.doc, Job) else None
            for record in passing.get(result.name, ()) if result.verdict is Verdict.APPLIED else ():
                self._context.events.emit(
                    "slot passed", job=record.job, handler=handler, node=self._context.settings.node,
                    slot=record.slot, count=record.count, outcome=record.status, reason=record.reason,
                )  # fmt: skip
