"""Finds what is due and claims it, never more than the node can start at once; sleeps to the next due instant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf

from solocron.engine.attempts import Board, Standing
from solocron.engine.calendars import Calendars, learned
from solocron.engine.loop import Patience
from solocron.engine.memory import Memory
from solocron.engine.permits import Permits
from solocron.engine.recovery import Recovery
from solocron.engine.runner import Runner
from solocron.engine.settings import Settings
from solocron.events import Events
from solocron.jobs.registry import Handler
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Origin, Record
from solocron.model.documents.session import Session
from solocron.model.timetable import Resolve
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import Later, Needs, claim
from solocron.runtime import Runtime
from solocron.stores.contract import All, Applied, Due, Gate, Named, Result, Store, Verdict

__all__ = ["Claimer"]

_APPLIED, _BACKFILL = Verdict.APPLIED, Origin.BACKFILL
_KNOWN = (Verdict.APPLIED, Verdict.DECLINED)
_UNSURE = (Verdict.CONTENDED, Verdict.UNKNOWN)

FIRST, BATCH = 100, 200
"""Claims at once, first and while more is due. More saves hardly a statement, but bodies start later and the other
nodes get less of a burst."""
PERMIT_POLL = 1.0
"""Seconds after which a job that waits for a permit is looked at again, if nobody said that one is free."""


class _Share:
    """How many backfills this node may begin at one look: a quarter of its places, so that live jobs find one free."""

    def __init__(self, most: int, running: int) -> None:
        self._left = most - running
        self._taken: set[str] = set()

    def spare(self, job: str) -> bool:
        return len(self._taken) - (job in self._taken) < self._left

    def note(self, job: str, change: Change | None) -> None:
        """A store may ask again for the same document: only the last answer counts."""
        hold = None if change is None else change.answer
        if isinstance(hold, Hold) and hold.origin is _BACKFILL:
            self._taken.add(job)
        else:
            self._taken.discard(job)


class Claimer:
    """One `update(due)` per step; each claim that it brings is started before the step returns."""

    def __init__(
        self,
        *,
        store: Store,
        board: Board,
        runtime: Runtime,
        settings: Settings,
        events: Events,
        handlers: Mapping[str, Handler],
        resolve: Resolve,
        runner: Runner,
        permits: Permits,
        recovery: Recovery,
        memory: Memory,
        wake_keeper: Callable[[], None],
        calendars: Calendars | None = None,
    ) -> None:
        self._store = store
        self._board = board
        self._runtime = runtime
        self._settings = settings
        self._events = events
        self._handlers = handlers
        self._resolve = resolve
        self._runner = runner
        self._permits = permits
        self._recovery = recovery
        self._memory = memory
        self._wake_keeper = wake_keeper
        self._anew = False
        self._settled = False
        self._calendars = calendars
        self._again = False
        """Whether a job was left alone only because its calendar had to be fetched first."""
        self._past = _Share(most=1, running=0)
        self._planned = 0.0
        self._expected: float | None = None
        """Boot time at which something falls due as far as this node knows."""
        self._full = True
        """Whether something may be due that this node had no place for, or no session."""
        self.flooded = False
        """Whether the last claim brought as many as it asked for, and more is due."""
        self._nothing = 0
        self._declined: dict[str, float] = {}
        """Jobs that this node leaves alone, until when on its boot clock."""
        self._turns: dict[str, float] = {}
        """Those of them that it must look at again then."""
        self._passing: dict[str, tuple[Record, ...]] = {}
        """What the call under way passes over, by job."""
        self.wake: Callable[[], None] = lambda: None
        self.unsettled: Callable[[Job], None] = lambda job: None
        """Called with a due job whose definition somebody may have to write before this node can decide it."""
        self.calmed: Callable[[], None] = lambda: None
        """Called when a flood is over: outcomes need not wait for each other any longer."""

    def look_at(self, due_at: int | None) -> None:
        """Something changed on this node: a place is free (None), or a job is due at an instant."""
        if due_at is None:
            if not self._full:
                return
        else:
            at = self._board.boot_of(due_at)
            if at is not None and at >= self._planned:
                return
        self.wake()

    def look_again(self) -> None:
        """Something changed somewhere: what this node left to others may be its own now."""
        self._anew = True
        self.wake()

    def settled(self) -> None:
        """Definitions were written: what this node could not decide it may be able to now."""
        self._settled = True
        self.wake()

    def step(self, now: float) -> float:
        """Claim what is due and start it; returns when the next thing is due."""
        if self._anew:
            self._anew = False
            self._turns.clear()
        # Whatever changes from here on wakes the loop once more: nothing is missed between looking and planning.
        limit = min(self._board.free(), BATCH if self.flooded else FIRST)
        self._planned, self._full = inf, True
        session = self._board.session
        if self._board.draining or session is None or self._board.standing() is not Standing.HELD or limit == 0:
            self._note_flood(False)
            self._planned = now + self._settings.poll
            return self._planned
        if not self._recovery.may_claim():
            self._note_flood(False)
            self._planned = self._recovery.claims_from() or now + self._settings.poll
            return self._planned
        self._full = False
        applied, replied, _ = self._claim(session, limit, now)
        if not applied.alive or applied.shut:
            self._full = True
            return now + self._settings.beat
        expected, self._expected = self._expected is not None and now >= self._expected, None
        if expected and not any(result.verdict is Verdict.APPLIED for result in applied.results):
            self._events.emit("held elsewhere", node=self._settings.node)
        self._planned = self._next(applied, replied)
        return self._planned

    def claim_once(self) -> int:
        """One pass for an external trigger: how many bodies were started."""
        session = self._board.session
        limit = min(self._board.free(), BATCH)
        if session is None or limit == 0 or self._board.standing() is Standing.NONE or not self._recovery.may_claim():
            return 0
        applied, _, started = self._claim(session, limit, self._runtime.clock.boot())
        decided = [
            r for r in applied.results if r.verdict is Verdict.APPLIED and not isinstance(r.answer, Later | Needs)
        ]
        return max(started, len(decided), int(self._again))

    def _claim(self, session: str, limit: int, asked: float) -> tuple[Applied, float, int]:
        """Claim and start; what the store said, when it had said it, and how many bodies were started."""
        self._again = False
        by = Claimant(
            session=session,
            node=self._settings.node,
            late_for=self._settings.late_for,
            alone=not self._board.peers,
            application=self._application,
        )
        past = self._board.running_of(Origin.BACKFILL)
        self._past = _Share(most=max(1, self._settings.max_running // 4), running=past)
        now = self._runtime.clock.boot()
        if self._settled:
            self._settled = False
            self._declined.clear()
        self._declined = {name: until for name, until in self._declined.items() if until > now}
        self._turns = {name: until for name, until in self._turns.items() if until > now}
        due = Due(
            handlers=frozenset(self._handlers),
            pools=self._settings.pools,
            limit=limit,
            exclude=self._board.excluded() | frozenset(self._declined) | frozenset(self._turns),
        )
        epoch, gate = self._recovery.epoch, self._recovery.gate()
        call = self._board.call_begins()
        self._runtime.failpoint("claiming")
        try:
            applied = self._store.update(due, lambda doc, at: self._change(doc, at, by), session=session, gate=gate)
            replied = self._runtime.clock.boot()
            self._board.saw_store_time(applied.now, asked=asked, replied=replied)
            more = applied.next_due is not None and applied.next_due <= applied.now
            self._note_flood(more and 0 < limit <= len(applied.results))
            started = 0
            self._tell_passed(applied)
            if applied.alive:  # what was claimed starts before anything is fetched for the others
                needy = tuple(result for result in applied.results if isinstance(result.answer, Needs))
                started = self._start(_without(applied, needy), session, epoch, replied)
                if needy:
                    applied = self._bring(applied, by, session, gate)
                    names = {result.name for result in needy}
                    # Declined by now: another node was faster, and there is nothing to do here for the moment.
                    brought = tuple(r for r in applied.results if r.name in names and r.verdict is not Verdict.DECLINED)
                    self._tell_passed(replace(applied, results=brought))
                    started += self._start(
                        replace(applied, results=brought), session, epoch, self._runtime.clock.boot()
                    )
        finally:
            # Not before each claim is on the board: the keeper would take them for claims whose answer was lost.
            # An unknown outcome counts as not held; if the claim did land, the keeper's next look finds it.
            self._board.call_ends(call)
        if not applied.alive or applied.shut:
            # Buried, or the store went back, perhaps to before the session began: the keeper finds out which.
            self._recovery.shut()
            self._wake_keeper()
        return applied, replied, started

    def _application(self, handler: str) -> str | None:
        known = self._handlers.get(handler)
        return None if known is None else known.application

    def _note_flood(self, flooded: bool) -> None:
        over = self.flooded and not flooded
        self.flooded = flooded
        if over:
            self.calmed()

    def _bring(self, applied: Applied, by: Claimant, session: str, gate: Gate) -> Applied:
        """Fetch what some of the jobs need (the sessions, a permit) and claim those again by name."""
        claimants: dict[str, Claimant] = {}
        for _ in range(3):  # the sessions, then a permit, and once more if a deploy changed the job meanwhile
            needy = {r.name: r.answer for r in applied.results if isinstance(r.answer, Needs)}
            equipped = self._equipped(needy, claimants, by) if applied.alive else {}
            if not equipped:
                return applied
            claimants |= equipped
            permits = {name: one.permit for name, one in equipped.items() if one.permit is not None}
            try:
                again = self._store.update(
                    Named(Kind.JOB, tuple(sorted(equipped))),
                    lambda doc, at, equipped=equipped: self._change(doc, at, equipped[doc.name]),  # type: ignore[misc]
                    session=session,
                    gate=gate,
                )
            except BaseException:
                self._permits.doubt(permits.values())
                raise
            self._use(again, permits, session)
            self._tell_passed(again)
            results = {result.name: result for result in (*applied.results, *again.results)}
            applied = replace(
                applied,
                results=tuple(results.values()),
                now=again.now or applied.now,
                alive=again.alive,
                shut=again.shut,
            )
        return applied

    def _equipped(
        self, needy: Mapping[str, Needs], claimants: Mapping[str, Claimant], by: Claimant
    ) -> dict[str, Claimant]:
        """Who claims each job, with what it needs; without those for which there is no permit."""
        found: dict[str, Claimant] = {}
        if any(need.sessions for need in needy.values()):
            sessions = tuple(doc for doc in self._store.read(All(Kind.SESSION)) if isinstance(doc, Session))
            found |= {name: replace(by, sessions=sessions) for name, need in needy.items() if need.sessions}
        limits: dict[str, list[str]] = {}
        for name, need in needy.items():
            if need.limit is not None:
                limits.setdefault(need.limit, []).append(name)
        for limit, names in limits.items():
            try:
                taken = self._permits.take(limit, len(names), by.session)
            except BaseException:
                self._permits.doubt(one.permit for one in found.values() if one.permit is not None)
                raise
            self._permits.release(taken[len(names) :], by.session)
            found |= {
                name: replace(claimants.get(name, by), permit=permit)
                for name, permit in zip(names, taken, strict=False)
            }
        return found

    def _use(self, applied: Applied, permits: Mapping[str, str], session: str) -> None:
        """Permits whose claim stands belong to it, those in doubt wait for the next beat, the others go back."""
        for result in applied.results:
            permit = permits.get(result.name)
            if permit is None:
                continue
            if result.verdict is Verdict.UNKNOWN:
                self._permits.doubt([permit])
            elif not (isinstance(result.answer, Hold) and self._permits.owns(result.answer)):
                self._permits.release([permit], session)
        self._permits.flush()

    def _change(self, doc: Job | Absent, now: int, by: Claimant) -> Change | None:
        """Claim; a node that has no place left for a backfill leaves those alone."""
        by = by if self._past.spare(doc.name) else replace(by, spare=False)
        change = claim(doc, now=now, by=by, resolve=self._resolve)
        self._past.note(doc.name, change)
        passed = change is not None and change.entries and not change.entries[0].record.attempt  # they come first
        if change is not None and passed:
            self._passing[doc.name] = tuple(entry.record for entry in change.entries if not entry.record.attempt)
        else:
            self._passing.pop(doc.name, None)  # of several calls for one document the last one counts
        return change

    def _start(self, applied: Applied, session: str, epoch: str, replied: float) -> int:
        started = 0
        claims = [
            (result.doc, result.answer)
            for result in applied.results
            if result.verdict is _APPLIED and isinstance(result.answer, Hold) and isinstance(result.doc, Job)
        ]
        # A claim that is acknowledged after this node has begun to check another epoch may be lost already.
        in_time = not claims or self._memory.claimed(epoch, claims)
        for result in applied.results:
            if result.verdict is _APPLIED and isinstance(result.doc, Job):
                hold = result.answer
                if isinstance(hold, Hold):
                    if not in_time:
                        continue
                    self._events.emit(
                        "claimed", job=result.name, run=hold.run, slot=hold.slot, attempt=hold.attempt,
                        fence=hold.fence, node=self._settings.node,
                    )  # fmt: skip
                    started += self._runner.start(result.doc, hold, session)
                elif isinstance(hold, Later):
                    self._wait_for(result.name, hold.until, replied)
                    self.unsettled(result.doc)
                elif isinstance(hold, Needs):  # no permit is free: others may give one back without a word
                    self._turns[result.name] = replied + PERMIT_POLL
            elif result.verdict is Verdict.BLOCKED:
                self._events.emit("job blocked", job=result.name, error=result.error)
            elif result.verdict is Verdict.DECLINED and learned(self._calendars, result.doc):
                self._again = True
            elif result.verdict is Verdict.DECLINED:
                # A due document that this node cannot decide must not head every batch.
                self._declined[result.name] = replied + self._settings.beat
                if isinstance(result.doc, Job):
                    self.unsettled(result.doc)
            else:  # contended, or unknown and then not ours until the store shows it
                self._events.emit("held elsewhere", job=result.name, node=self._settings.node)
        return started

    def _tell_passed(self, applied: Applied) -> None:
        """Say which slots the claims that stand have passed over, and why."""
        passing, self._passing = self._passing, {}
        for result in applied.results if passing else ():
            for record in passing.get(result.name, ()) if result.verdict is Verdict.APPLIED else ():
                self._events.emit(
                    "slot passed", job=record.job, node=self._settings.node, slot=record.slot, count=record.count,
                    outcome=record.status, reason=record.reason,
                )  # fmt: skip

    def _wait_for(self, job: str, until: int, replied: float) -> None:
        """Others go first: the job is left alone until its turn has come here."""
        at = self._board.boot_of(until)
        self._turns[job] = replied + self._settings.beat if at is None else min(at, replied + self._settings.beat)

    def _next(self, applied: Applied, replied: float) -> float:
        if self._again:
            return replied
        latest = min((*self._turns.values(), replied + self._settings.poll))
        # `next_due` speaks of what was not returned; what was has a next instant of its own.
        moments = [
            r.doc.due_at
            for r in applied.results
            if isinstance(r.doc, Job)
            and r.verdict in _KNOWN
            and not (r.name in self._turns or r.name in self._declined)
        ]
        due = min((at for at in (applied.next_due, *moments) if at is not None), default=None)
        if any(result.verdict in _UNSURE for result in applied.results):
            return self._in_a_moment(replied)  # when that is due next is not known
        if due is None:
            self._nothing = 0
            return latest
        if due > applied.now:
            self._nothing = 0
            self._expected = self._board.boot_of(due)
            return latest if self._expected is None else min(self._expected, latest)
        if applied.next_due is None or applied.next_due > applied.now:
            self._nothing = 0
            return replied  # one of those just claimed has more to run
        if self.flooded:
            self._nothing = 0
            self._full = True
            return replied
        return self._in_a_moment(replied)

    def _in_a_moment(self, replied: float) -> float:
        """Others are changing what is due, or nobody knows what became of a claim: look again, less and less often."""
        self._nothing += 1
        return replied + Patience.delay(self._nothing) / 10 * self._runtime.rng.uniform(0.5, 1.5)


def _without(applied: Applied, some: tuple[Result, ...]) -> Applied:
    return (
        replace(applied, results=tuple(result for result in applied.results if result not in some)) if some else applied
    )
