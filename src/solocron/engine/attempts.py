"""What this node holds and runs, in one place behind one mutex that is never kept across a call to anything.

Everything that more than one loop of the node touches lives here: the session and how long it can be trusted,
the claims, the bodies, the bodies that outlived an earlier session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from solocron.dispatch.contract import Interrupt, Stop
from solocron.engine.settings import Settings
from solocron.lease.store_clock import StoreClock
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Origin
from solocron.runtime import Runtime

__all__ = ["Board", "Phase", "Running", "Standing"]


class Standing(StrEnum):
    """How sure the node is of its session."""

    NONE = "none"
    """No session yet, or the last one was lost."""
    HELD = "held"
    """Renewed in time: claim and run."""
    JEOPARDY = "jeopardy"
    """A renewal is overdue: start nothing new, keep trying."""


class Phase(StrEnum):
    """How far a claim has come on this node."""

    CLAIMED = "claimed"
    BEGUN = "begun"
    ENDED = "ended"


_NONE, _HELD, _JEOPARDY = Standing.NONE, Standing.HELD, Standing.JEOPARDY
_CLAIMED, _BEGUN, _ENDED = Phase.CLAIMED, Phase.BEGUN, Phase.ENDED


@dataclass(slots=True, eq=False)
class Running:
    """A claim of this node and what became of it."""

    job: str
    hold: Hold
    definition: Definition
    session: str
    since: float
    """Boot time at which the claim was acknowledged."""
    key: tuple[str, int]
    """Its run and fence."""
    phase: Phase = Phase.CLAIMED
    begun_at: float | None = None
    started_at: int | None = None
    """The same moment by the store's clock, as far as this node knows it."""
    expires: float | None = None
    """Boot time of its deadline."""
    stop: Stop | None = None
    stop_at: float | None = None
    revoked: bool = False
    stuck: bool = False
    ended_at: float | None = None
    """Boot time at which it had an outcome; until that is in the store, the claim stays."""
    settled: bool = False
    """Its outcome is on its way to the store; what the body still does changes nothing."""
    asking: bool = False
    """Its `on_retry` has been asked, and the body has not started yet."""
    interrupt: Interrupt | None = None
    progress: dict[str, Any] | None = None
    progress_written: dict[str, Any] | None = None

    def report(self, progress: dict[str, Any]) -> None:
        """The body tells how far it is."""
        self.progress = progress


class Board:
    """The node's shared state."""

    def __init__(self, runtime: Runtime, settings: Settings) -> None:
        self._runtime = runtime
        self._settings = settings
        self._mutex = runtime.mutex()
        self.session: str | None = None
        self.draining = False
        self.peers = 0
        """How many other nodes lived when this one last looked."""
        self.beats = 0
        """Renewals of the session that the store has acknowledged."""
        self._sent = 0
        """The number of the last renewal that was sent."""
        self._trusted_until = 0.0
        self._renewed = 0.0
        self._troubled = False
        self._running: dict[tuple[str, int], Running] = {}
        self._leftovers: list[Running] = []
        self._old_sessions: dict[str, float] = {}
        self._calls: dict[int, float] = {}
        self._call = 0
        self._suspects: dict[tuple[str, int], int] = {}
        self._done: set[tuple[str, int]] = set()
        self._done_before: set[tuple[str, int]] = set()
        self._done_since = 0.0
        """Claims that ended lately, in two heaps: those of the present lease, and those of one before it."""
        self._store_clock = StoreClock()
        self.replan: Callable[[], None] = lambda: None
        """Called when what was planned does not hold any more: jeopardy is over, the store's clock has leapt."""
        self.ended = runtime.event()
        """Set whenever a body ends or a claim goes away: drain and tick wait on it."""

    # --- trust -------------------------------------------------------------------------------------------------

    def hold_session(self, session: str, asked: float) -> None:
        """A new session, trusted from before it was asked for."""
        with self._mutex:
            self.session = session
            self.beats = self._sent = 0
            self._renewed = asked
            self._trusted_until = asked + self._settings.lease - self._settings.margin
            self._troubled = False

    def renewed(self, session: str, asked: float) -> bool:
        """Extend the trust; False when the answer came after it had ended: lost is final."""
        with self._mutex:
            if self.session != session or self._runtime.clock.boot() >= self._trusted_until:
                return False
            jeopardy = self._standing(self._runtime.clock.boot()) is _JEOPARDY
            self._renewed = asked
            self._trusted_until = asked + self._settings.lease - self._settings.margin
            self._troubled = False
        if jeopardy:
            self.replan()
        return True

    def next_beat(self) -> int:
        """The number of the next renewal: each has its own, whatever became of those before it."""
        with self._mutex:
            self._sent += 1
            return self._sent

    def count_beats(self, session: str, beats: int) -> None:
        """The store acknowledged a renewal that counts so many."""
        with self._mutex:
            if self.session == session:
                self.beats = max(self.beats, beats)

    def trouble(self) -> None:
        """A renewal failed: nothing new starts until one succeeds."""
        with self._mutex:
            self._troubled = True

    def trusted_until(self) -> float | None:
        with self._mutex:
            return self._trusted_until if self.session is not None else None

    def standing(self) -> Standing:
        with self._mutex:
            return self._standing(self._runtime.clock.boot())

    def _standing(self, now: float) -> Standing:
        if self.session is None or now >= self._trusted_until:
            return _NONE
        if self._troubled or now > self._renewed + 2 * self._settings.beat:
            return _JEOPARDY
        return _HELD

    def lose(self) -> tuple[str | None, list[Running]]:
        """Give the session up: its claims are no longer ours. Answers what was lost; None when it was gone already."""
        with self._mutex:
            session, self.session = self.session, None
            if session is None:
                return None, []
            lost = [running for running in self._running.values() if running.phase is not _ENDED]
            self._running.clear()
            self._suspects.clear()
            for running in lost:
                if running.phase is _CLAIMED:
                    running.revoked = True
            bodies = [running for running in lost if running.phase is _BEGUN]
            self._leftovers.extend(bodies)
            self._old_sessions[session] = self._runtime.clock.boot()
            self.ended.set()
            return session, bodies

    def leave(self) -> tuple[bool, str | None]:
        """Whether nothing of this node is under way; then it has no session any more, and the one it had is told.

        One step: an answer to a claim that arrives later finds no session to start anything under.
        """
        with self._mutex:
            if self._running or self._leftovers:
                return False, None
            session, self.session = self.session, None
            return True, session

    def farewells(self) -> list[str]:
        """Lost sessions none of whose bodies is left: they may be buried by ourselves."""
        with self._mutex:
            busy = {running.session for running in self._leftovers}
            return [session for session in self._old_sessions if session not in busy]

    def forget_session(self, session: str) -> None:
        with self._mutex:
            self._old_sessions.pop(session, None)

    # --- claims ------------------------------------------------------------------------------------------------

    def free(self) -> int:
        """How many more bodies this node may run; a stuck one has been replaced and does not count."""
        with self._mutex:
            busy = waiting = 0
            for running in self._running.values():
                if running.phase is _ENDED:
                    waiting += 1
                elif not running.stuck:
                    busy += 1
            busy += sum(1 for r in self._leftovers if not r.stuck)
            most = self._settings.max_running
            return 0 if waiting > 4 * most + 1_000 else max(0, most - busy)

    def running_of(self, origin: Origin) -> int:
        """How many runs of an origin this node has."""
        with self._mutex:
            found = [r for r in (*self._running.values(), *self._leftovers) if r.phase is not _ENDED]
            return sum(running.hold.origin is origin for running in found)

    def excluded(self) -> frozenset[str]:
        """Jobs of which an old body still runs here: never claimed by this node until it has ended."""
        with self._mutex:
            stuck = {running.job for running in self._running.values() if running.stuck}
            return frozenset(running.job for running in self._leftovers) | stuck

    def call_begins(self) -> int:
        """A claim is on its way: holds that it may bring are not yet for adoption."""
        with self._mutex:
            self._call += 1
            self._calls[self._call] = self._runtime.clock.boot()
            return self._call

    def call_ends(self, call: int) -> None:
        with self._mutex:
            self._calls.pop(call, None)

    def add(self, job: Job, hold: Hold, session: str) -> Running | None:
        """Note an acknowledged claim; None when the session is not trusted any more, or the claim is known."""
        key = (hold.run, hold.fence)
        with self._mutex:
            now = self._runtime.clock.boot()
            if self._standing(now) is _NONE or self.session != session or self._knows(key):
                return None
            running = Running(job.name, hold, job.definition, session, now, key)
            self._running[key] = running
            self._suspects.pop(key, None)
            return running

    def unknown(self, holds: Iterable[tuple[Job, Hold]]) -> list[tuple[Job, Hold]]:
        """Holds of our session that we know nothing of and that no call under way can still explain."""
        with self._mutex:
            oldest = min(self._calls, default=self._call + 1)
            found = []
            for job, hold in holds:
                key = (hold.run, hold.fence)
                if self._knows(key):
                    continue
                since = self._suspects.setdefault(key, self._call)
                if oldest > since:
                    found.append((job, hold))
            return found

    def _knows(self, key: tuple[str, int]) -> bool:
        """Whether a claim is under way here, or was until lately."""
        return key in self._running or key in self._done or key in self._done_before

    def vanished(self, held: set[tuple[str, int]], asked: float) -> list[Running]:
        """Bodies whose hold is gone from the store although it was acknowledged before we looked."""
        with self._mutex:
            return [
                running
                for key, running in self._running.items()
                if key not in held and running.since < asked and running.phase is not _ENDED
            ]

    # --- bodies ------------------------------------------------------------------------------------------------

    def begin(self, running: Running) -> bool:
        """Whether the body may start now: the claim stands, the session is trusted, nobody wants it to stop."""
        with self._mutex:
            now = self._runtime.clock.boot()
            if running.revoked or running.key not in self._running or self._standing(now) is _NONE:
                return False
            running.phase = _BEGUN
            running.begun_at = now
            running.started_at = self._store_clock.time_of(now)
            if running.definition.timeout is not None:
                running.expires = now + running.definition.timeout / 1_000_000
            return True

    def revoke(self, running: Running) -> bool:
        """Take a claim back before its body begins; False when it has begun."""
        with self._mutex:
            if running.phase is not _CLAIMED:
                return False
            running.revoked = True
            return True

    def ask_to_stop(self, running: Running, stop: Stop) -> bool:
        """Mark the body; True the first time, so that it is interrupted once per reason."""
        with self._mutex:
            if running.phase is _ENDED or (running.stop is not None and running.stop.kind == stop.kind):
                return False
            if running.stop is not None and stop.kind != "lost":
                return False
            running.stop = stop
            running.stop_at = self._runtime.clock.boot()
            return True

    def mark_stuck(self, running: Running) -> bool:
        with self._mutex:
            first = not running.stuck
            running.stuck = True
            self.ended.set()
            return first

    def body_ended(self, running: Running) -> bool:
        """The body is over; True when its claim is still ours, so that its outcome is to be recorded."""
        with self._mutex:
            ours = running.key in self._running and not running.settled
            running.settled = True
            running.phase = _ENDED
            running.ended_at = self._runtime.clock.boot()
            if self._leftovers:
                self._leftovers = [other for other in self._leftovers if other is not running]
            self._tell_ended()
            return ours

    def unrecorded_since(self) -> float | None:
        """Boot time of the earliest end that is not in the store yet."""
        with self._mutex:
            return min((r.ended_at for r in self._running.values() if r.ended_at is not None), default=None)

    def stopped(self, running: Running) -> Stop | None:
        """Why the body must stop, asked by the body itself: a frozen node finds out here first."""
        stop = running.stop
        if stop is not None:
            return stop
        with self._mutex:
            ours = running.session == self.session and self._runtime.clock.boot() < self._trusted_until
        return None if ours else Stop("lost", "this node could not renew its lease in time")

    def done(self, some: Iterable[Running]) -> None:
        """Their ends are in the store, or will never be: the claims are no longer ours."""
        with self._mutex:
            now = self._runtime.clock.boot()
            if now - self._done_since > self._settings.lease:  # every entry stays for a lease at least
                self._done, self._done_before, self._done_since = set(), self._done, now
            for running in some:
                if self._running.pop(running.key, None) is not None:
                    self._done.add(running.key)
            self._tell_ended()

    def _tell_ended(self) -> None:
        """The mutex is held and the change made, so whoever clears the event afterwards sees the change."""
        if not self.ended.is_set():
            self.ended.set()

    def abandon(self, running: Running) -> bool:
        """Let a stuck body go: its claim is to be ended; the body still keeps this node from claiming the job."""
        with self._mutex:
            if running.key not in self._running or running.settled:
                return False
            running.settled = True
            running.ended_at = self._runtime.clock.boot()
            self._leftovers.append(running)
            return True

    def running(self) -> list[Running]:
        with self._mutex:
            return list(self._running.values())

    def bodies(self) -> list[Running]:
        """Everything that still executes here, leftovers included."""
        with self._mutex:
            current = [running for running in self._running.values() if running.phase is _BEGUN]
            return [*current, *(r for r in self._leftovers if r not in current)]

    # --- time --------------------------------------------------------------------------------------------------

    def saw_store_time(self, now: int, *, asked: float, replied: float) -> None:
        """The store said `now` between `asked` and `replied`, both on our boot clock; 0 if it said nothing."""
        with self._mutex:
            leapt = self._store_clock.read(now, asked=asked, replied=replied)
        if leapt:
            self.replan()

    def boot_of(self, instant: int) -> float | None:
        """When, on our boot clock, the store's clock has certainly reached an instant."""
        with self._mutex:
            return self._store_clock.boot_of(instant)

    def store_ran_evenly_since(self, instant: int) -> bool:
        """Whether the store's clock has not leapt forward since it wrote an instant, as far as we have seen it."""
        with self._mutex:
            return self._store_clock.ran_evenly_since(instant)

    def store_now(self) -> int | None:
        """The store's time as far as we know it, for display and for records of what happened here."""
        with self._mutex:
            return self._store_clock.time_of(self._runtime.clock.boot())
