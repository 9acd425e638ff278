"""Renews the session from a loop of its own; a blocked event loop or a slow claim cannot delay a renewal.

With every beat it also compares what the store says this session holds with what the node runs: claims whose answer
was lost are adopted, requests to stop reach the bodies, progress is written. Where the renewal itself was told that the
session holds nothing, and nothing runs, that was the look.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from solocron.dispatch.contract import Stop
from solocron.engine.attempts import Board, Running
from solocron.engine.memory import Memory
from solocron.engine.permits import Permits
from solocron.engine.recovery import Recovery
from solocron.engine.runner import Runner
from solocron.engine.settings import Settings
from solocron.errors import StoreError, StoreUnavailable
from solocron.events import Events
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Status
from solocron.model.documents.session import Life, Session, begin, end, renew
from solocron.model.timetable import Resolve
from solocron.model.transitions.finishing import Outcome, finish, note_progress
from solocron.model.transitions.untold import WENT_BACK
from solocron.runtime import Runtime
from solocron.stores.contract import HeldBy, Named, Store, Verdict

__all__ = ["Keeper"]


class Keeper:
    """Holds one session after the other for as long as the node lives."""

    def __init__(
        self,
        *,
        store: Store,
        board: Board,
        runtime: Runtime,
        settings: Settings,
        events: Events,
        runner: Runner,
        permits: Permits,
        recovery: Recovery,
        memory: Memory,
        resolve: Resolve,
        describe: Callable[[str], Session],
        begun: Callable[[], None],
        lost: Callable[[str], None],
    ) -> None:
        self._store = store
        self._board = board
        self._runtime = runtime
        self._settings = settings
        self._events = events
        self._runner = runner
        self._permits = permits
        self._recovery = recovery
        self._memory = memory
        self._resolve = resolve
        self._describe = describe
        self._begun = begun
        self._lost = lost
        self._failures = 0
        self._next = 0.0
        self._rests_until = 0.0
        self._holds_nothing = False
        """What the last renewal was told; good for that one beat."""
        self._seen_at = 0
        """Store time of the last renewal."""
        self._looked_at = 0
        """Store time of the renewal before the last complete look at what this session holds."""

    def step(self, now: float) -> float:
        """Renew what is due; return when to be called again."""
        session = self._board.session
        if session is None:
            if now >= self._rests_until:
                self._begin(now)
            if self._board.session is not None:
                self._recovery.attend(self._board.session, self.keep)
            self._bury_old()
            return self._recovery.next_look(self._later(now))
        if now >= self._next:
            if not self._renew(session, now):
                return self._soon(now)
            self._next = self._later(now)
        else:
            self._holds_nothing = False
        self._recovery.look_at_others()
        if not self._recovery.attend(session, self.keep):
            return self._soon(now)
        if self._holds_nothing and not self._board.running():
            self._looked_at = self._seen_at
            self._permits.reconcile(session, ())
        else:
            self.reconcile(session)
        self._bury_old()
        return min(self._next, self._recovery.next_look(self._next))

    def _begin(self, now: float) -> None:
        """A new session under an id that nobody has had before."""
        if self._board.draining:
            return
        self._store.open()
        self._recovery.look_back()
        self._recovery.join()
        name = self._runtime.rng.token()
        described = replace(self._describe(name), epoch=self._recovery.epoch)
        applied = self._store.update(Named(Kind.SESSION, (name,)), lambda doc, at: begin(doc, described, now=at))
        replied = self._runtime.clock.boot()
        self._board.saw_store_time(applied.now, asked=now, replied=replied)
        if applied.results[0].verdict is not Verdict.APPLIED:
            raise StoreUnavailable(f"a new session could not be begun ({applied.results[0].verdict}); trying again")
        self._failures = 0
        self._seen_at = self._looked_at = applied.now
        self._board.hold_session(name, now)
        self._recovery.begun(name, now)
        self._next = self._later(now)
        self._events.emit("session begun", session=name, node=self._settings.node, lease_s=self._settings.lease)
        self._begun()

    def rest(self) -> None:
        """Begin no new session for a lease: others shall have the runs that this node could not end."""
        self._rests_until = self._runtime.clock.boot() + self._settings.lease

    def keep(self) -> None:
        """Renew if it is time to: called in the middle of what takes long on the very thread that renews."""
        session, now = self._board.session, self._runtime.clock.boot()
        if session is not None and now >= self._next and self._renew(session, now):
            self._next = self._later(now)

    def _renew(self, session: str, asked: float) -> bool:
        """One conditional write; the trust counts from before it was sent."""
        running, seen, number = len(self._board.running()), self._board.beats, self._board.next_beat()
        self._runtime.failpoint("renewing")
        try:
            applied = self._store.update(
                Named(Kind.SESSION, (session,)),
                lambda doc, at: renew(doc, now=at, running=running, seen=seen, number=number),
            )
        except StoreError as error:
            return self._trouble(str(error))
        except Exception as error:
            self._trouble(repr(error))
            raise
        result = applied.results[0]
        verdict = result.verdict
        replied = self._runtime.clock.boot()
        self._board.saw_store_time(applied.now, asked=asked, replied=replied)
        if verdict is Verdict.DECLINED:
            return self._declined(result.doc, session)
        if verdict is not Verdict.APPLIED:
            return self._trouble(f"the renewal's outcome is {verdict}")
        if not self._board.renewed(session, asked):
            # The answer came after the trust had ended: lost is final, whatever the store says now.
            self._lost("its lease was renewed too late")
            return False
        if self._failures:
            self._events.emit("store back", node=self._settings.node, after=self._failures)
        self._failures = 0
        self._seen_at = applied.now or self._seen_at
        self._holds_nothing = applied.holds is False
        assert isinstance(result.doc, Session)
        self._board.count_beats(session, result.doc.beats)
        self._recovery.renewed(result.doc, asked)
        self._recovery.saw(applied.gate)
        self._events.emit("session renewed", session=session, node=self._settings.node)
        return True

    def _declined(self, doc: object, session: str) -> bool:
        """The session is dead, or the store has gone back to before its last renewal.

        A live session that went back is kept: its node checks what it remembers, and then renews it again. One that is
        dead or gone in the past that came back is lost all the same; the next session begins the check.
        """
        back, live = self._recovery.went_back(doc, session), isinstance(doc, Session) and doc.state is Life.LIVE
        if back and live:
            return self._recovery.attend(session, self.keep)
        if live:
            return self._trouble("a later renewal was faster")
        self._lost("the store went back to before it began" if back else "its session was buried")
        return False

    def _trouble(self, error: str) -> bool:
        self._failures += 1
        self._board.trouble()
        self._memory.stand_still()
        left = (self._board.trusted_until() or 0.0) - self._runtime.clock.boot()
        self._events.emit(
            "renewal failed", node=self._settings.node, error=error, failures=self._failures, trusted_for_s=left
        )
        return False

    def _later(self, now: float) -> float:
        return now + self._settings.beat * self._runtime.rng.uniform(0.85, 1.0)

    def _soon(self, now: float) -> float:
        """After a failure: several more tries fit into what is left of the lease."""
        return self._runtime.clock.boot() + self._settings.beat / 8 * self._runtime.rng.uniform(0.8, 1.2)

    # --- every beat ----------------------------------------------------------------------------------------------

    def reconcile(self, session: str) -> None:
        """Compare the store's view of our holds with ours."""
        asked = self._runtime.clock.boot()
        jobs = [doc for doc in self._store.read(HeldBy(session)) if isinstance(doc, Job)]
        holds = [(job, hold) for job in jobs for hold in job.active if hold.session == session]
        ours = {running.key: running for running in self._board.running()}
        for _, hold in holds:
            running = ours.get((hold.run, hold.fence))
            if running is not None and hold.cancel is not None:
                self._runner.stop(running, Stop("cancel", hold.cancel))
        for job, hold in self._board.unknown(holds):
            if self._can_be_new(hold):
                self._adopt(job, hold, session)
            else:
                self._end_old(job, hold)
        for running in self._board.vanished({(hold.run, hold.fence) for _, hold in holds}, asked):
            self._runner.stop(running, Stop("lost", "its claim is no longer in the store"))
        self._looked_at = self._seen_at
        self._permits.reconcile(session, [hold for _, hold in holds])
        self._write_progress()

    def _can_be_new(self, hold: Hold) -> bool:
        """Whether a hold that this node does not know can be a claim whose answer was lost.

        Then it was committed since the last complete look, and this process never knew it. The time of a claim is read
        before its commit, which may follow as late as a statement may take: less than a lease. What a claim of this
        process left is remembered for two.
        """
        recent = hold.claimed_at > self._looked_at - self._settings.lease_us
        return recent and not self._memory.knows((hold.run, hold.fence))

    def _adopt(self, job: Job, hold: Hold, session: str) -> None:
        if self._memory.claimed(self._recovery.epoch, [(job, hold)]):
            self._events.emit("adopted", job=job.name, run=hold.run, fence=hold.fence, node=self._settings.node)
            self._runner.start(job, hold, session)

    def _end_old(self, job: Job, hold: Hold) -> None:
        """End a hold of an earlier time that has come back: as it ended then, or as lost if nobody remembers that."""
        key = (hold.run, hold.fence)
        outcome = self._memory.outcome(key) or Outcome(status=Status.LOST, reason=WENT_BACK)
        self._store.update(
            Named(Kind.JOB, (job.name,)),
            lambda doc, at: finish(doc, run=hold.run, fence=hold.fence, outcome=outcome, now=at, resolve=self._resolve),
        )
        self._events.emit(
            "ended anew", job=job.name, run=hold.run, fence=hold.fence, node=self._settings.node, outcome=outcome.status
        )

    def _write_progress(self) -> None:
        changed: dict[str, list[tuple[Running, str]]] = {}
        for running in self._board.running():
            if running.progress is not None and running.progress != running.progress_written:
                changed.setdefault(running.job, []).append((running, json.dumps(running.progress)))
        if not changed:
            return
        self._store.update(Named(Kind.JOB, tuple(sorted(changed))), lambda doc, at: _noted(doc, at, changed))
        for told in changed.values():
            for running, text in told:
                running.progress_written = json.loads(text)

    def _bury_old(self) -> None:
        """Lost sessions whose bodies have ended are buried by their own node: nobody has to wait for their lease.

        Not before the node has checked what it remembers: a session without the mark holds the opening back.
        """
        checked = self._board.session is not None and self._recovery.checked
        for session in self._board.farewells():
            # Without a session of its own the node lets the store compare: the namespace is as it has checked it.
            gate = None if checked else self._recovery.gate_of(session)
            applied = self._store.update(
                Named(Kind.SESSION, (session,)),
                partial(_ended, reason="its node lost it and has stopped its bodies"),
                session=None if checked else session,
                gate=gate,
            )
            if not applied.shut:
                self._board.forget_session(session)


def _ended(doc: Session | Absent, now: int, *, reason: str) -> Change | None:
    return end(doc, now=now, reason=reason)


def _noted(doc: Job | Absent, now: int, changed: dict[str, list[tuple[Running, str]]]) -> Change | None:
    """The progress of every run of one job that is still held here."""
    notes = [
        note_progress(doc, run=running.hold.run, fence=running.hold.fence, progress=text, now=now)
        for running, text in changed[doc.name]
    ]
    entries = tuple(entry for note in notes if note is not None for entry in note.entries)
    return Change(doc, entries) if isinstance(doc, Job) and entries else None
