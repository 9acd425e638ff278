"""The table of attempts: what this node has claimed and runs, and the bodies that outlived an earlier session.

It shares the mutex of the lease: a claim is entered under a trusted session in one step, and losing the session takes
every claim out in one step. The mutex is never kept across a call to anything else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import Any

from solocron.dispatch.contract import Interrupt, Stop
from solocron.engine.node_context import NodeContext
from solocron.lease.own import OwnLease
from solocron.lease.trust import Standing
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Origin

__all__ = ["Attempts", "Phase", "Running"]

Key = tuple[str, int]
"""A run and its fence."""


class Phase(StrEnum):
    """Stages of a claim on this node."""

    CLAIMED = "claimed"
    BEGUN = "begun"
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class Running:
    """A claim of this node and its state."""

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
    outcome_known: bool = False
    """Its outcome is on its way to the store; what the body still does changes nothing."""
    asking: bool = False
    """Its `on_retry` has been asked, and the body has not started yet."""
    interrupt: Interrupt | None = None
    raised: BaseException | None = None
    """Exception of a body that failed in this process, for the log."""
    progress: dict[str, Any] | None = None

    def report(self, progress: dict[str, Any]) -> None:
        """Record the progress that the body reports."""
        self.progress = progress

    def printed(self, output: str) -> None:
        """Record the output of a body that is over."""
        self.progress = {**(self.progress or {}), "output": output}


class _CallsUnderWay:
    """Claims that were sent and not replied to yet, and the unknown holds that one of them may still explain."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._last = 0
        self._suspects: dict[Key, int] = {}
        """Holds that this node does not know, with the last call that was sent when each was first seen."""

    def __bool__(self) -> bool:
        return bool(self._open)

    def begin(self) -> int:
        self._last += 1
        self._open.add(self._last)
        return self._last

    def end(self, call: int) -> None:
        self._open.discard(call)

    def cannot_explain(self, key: Key) -> bool:
        """Return whether every call that may have brought the hold has been replied to."""
        since = self._suspects.setdefault(key, self._last)
        return min(self._open, default=self._last + 1) > since

    def explained(self, key: Key) -> None:
        self._suspects.pop(key, None)

    def forget(self) -> None:
        self._suspects.clear()


class _RecentlyDone:
    """Claims whose end is in the store, each for a lease: a read that began before that still shows them as held."""

    def __init__(self, lease: float) -> None:
        self._lease = lease
        self._ends: dict[Key, float] = {}
        """Boot time of each, the earliest first."""

    def knows(self, key: Key, now: float) -> bool:
        ended = self._ends.get(key)
        return ended is not None and now - ended <= self._lease

    def add(self, key: Key, now: float) -> None:
        self._ends[key] = now

    def forget_old(self, now: float) -> None:
        over = list(takewhile(lambda key: not self.knows(key, now), self._ends))
        for key in over:
            del self._ends[key]


class Attempts:
    """The node's claims and bodies, as its loops share them."""

    def __init__(self, context: NodeContext, lease: OwnLease) -> None:
        self.lease = lease
        self._boot = lease.boot
        self._mutex = lease.mutex
        self._most = context.settings.max_running
        self.draining = False
        self._running: dict[Key, Running] = {}
        self._leftovers: list[Running] = []
        self._lost_sessions: set[str] = set()
        self._calls = _CallsUnderWay()
        self._done = _RecentlyDone(context.settings.lease)
        self.ended = context.runtime.event()
        """Set whenever a body ends or a claim goes away: drain and tick wait on it."""

    # --- sessions ----------------------------------------------------------------------------------------------

    def lose(self) -> tuple[str | None, list[Running]]:
        """Give the session up and its claims with it; return the session (None if it was gone) and its bodies."""
        with self._mutex:
            session = self.lease.trust.lose()
            if session is None:
                return None, []
            lost = [running for running in self._running.values() if running.phase is not Phase.ENDED]
            self._running.clear()
            self._calls.forget()
            for running in lost:
                if running.phase is Phase.CLAIMED:
                    running.revoked = True
            bodies = [running for running in lost if running.phase is Phase.BEGUN]
            self._leftovers.extend(bodies)
            self._lost_sessions.add(session)
            self.ended.set()
            return session, bodies

    def leave(self) -> tuple[bool, str | None]:
        """Return whether nothing of this node is under way; then it gives its session up, which is returned too.

        One step: a reply to a claim that arrives later finds no session to start anything under.
        """
        with self._mutex:
            if self._running or self._leftovers:
                return False, None
            return True, self.lease.trust.lose()

    def sessions_to_close(self) -> list[str]:
        """Return the lost sessions none of whose bodies is left: this node may close them itself."""
        with self._mutex:
            busy = {running.session for running in self._leftovers}
            return sorted(self._lost_sessions - busy)

    def session_closed(self, session: str) -> None:
        with self._mutex:
            self._lost_sessions.discard(session)

    # --- claims ------------------------------------------------------------------------------------------------

    def free(self) -> int:
        """Number of further bodies this node may run; a stuck one has been replaced and does not count."""
        with self._mutex:
            busy = waiting = 0
            for running in self._running.values():
                if running.phase is Phase.ENDED:
                    waiting += 1
                elif not running.stuck:
                    busy += 1
            busy += sum(1 for r in self._leftovers if not r.stuck)
            most = self._most
            return 0 if waiting > 4 * most + 1_000 else max(0, most - busy)

    def running_of(self, origin: Origin) -> int:
        """Number of runs of an origin on this node."""
        with self._mutex:
            found = [r for r in (*self._running.values(), *self._leftovers) if r.phase is not Phase.ENDED]
            return sum(running.hold.origin is origin for running in found)

    def excluded(self) -> frozenset[str]:
        """Jobs of which an old body still runs here: this node never claims them until it has ended."""
        with self._mutex:
            stuck = {running.job for running in self._running.values() if running.stuck}
            return frozenset(running.job for running in self._leftovers) | stuck

    def call_begins(self) -> int:
        """Record that a claim is on its way: holds that it may bring are not yet for adoption."""
        with self._mutex:
            return self._calls.begin()

    def call_ends(self, call: int) -> None:
        with self._mutex:
            self._calls.end(call)

    def add(self, job: Job, hold: Hold, session: str) -> Running | None:
        """Enter an acknowledged claim; None if the session is not trusted any more, or the claim is known."""
        key = (hold.run, hold.fence)
        with self._mutex:
            now = self._boot()
            if not self.lease.trust.holds(session, now) or self._knows(key, now):
                return None
            running = Running(job.name, hold, job.definition, session, now, key)
            self._running[key] = running
            self._calls.explained(key)
            return running

    def unknown(self, holds: Iterable[tuple[Job, Hold]]) -> list[tuple[Job, Hold]]:
        """Return the holds of our session that are not in the table and that no call under way can still explain."""
        with self._mutex:
            found, now = [], self._boot()
            for job, hold in holds:
                key = (hold.run, hold.fence)
                if not self._knows(key, now) and self._calls.cannot_explain(key):
                    found.append((job, hold))
            return found

    def knows(self, key: Key) -> bool:
        """Return whether a claim is under way here, or was until lately."""
        with self._mutex:
            return self._knows(key, self._boot())

    def has(self, key: Key) -> bool:
        """Return whether a claim is under way here: its body has not ended, or its end is not in the store yet."""
        with self._mutex:
            return key in self._running

    def _knows(self, key: Key, now: float) -> bool:
        """Return whether a claim is under way here, or was until lately."""
        return key in self._running or self._done.knows(key, now)

    def vanished(self, held: set[tuple[str, int]], asked: float) -> list[Running]:
        """Return the bodies whose hold is gone from the store although it was acknowledged before the read."""
        with self._mutex:
            return [
                running
                for key, running in self._running.items()
                if key not in held and running.since < asked and running.phase is not Phase.ENDED
            ]

    # --- bodies ------------------------------------------------------------------------------------------------

    def begin(self, running: Running) -> bool:
        """Return whether the body may start now: the claim stands, the session is trusted, no stop was requested."""
        with self._mutex:
            now = self._boot()
            if running.revoked or running.key not in self._running or self.lease.trust.standing(now) is Standing.NONE:
                return False
            running.phase = Phase.BEGUN
            running.begun_at = now
            running.started_at = self.lease.store_time(now)
            if running.definition.timeout is not None and not running.hold.handing:
                running.expires = now + running.definition.timeout / 1_000_000
            return True

    def revoke(self, running: Running) -> bool:
        """Take a claim back before its body begins; False when it has begun."""
        with self._mutex:
            if running.phase is not Phase.CLAIMED:
                return False
            running.revoked = True
            return True

    def ask_to_stop(self, running: Running, stop: Stop) -> bool:
        """Mark the body; True the first time, so that it is interrupted once per reason."""
        with self._mutex:
            if running.phase is Phase.ENDED or (running.stop is not None and running.stop.kind == stop.kind):
                return False
            if running.stop is not None and stop.kind != "lost":
                return False
            running.stop = stop
            running.stop_at = self._boot()
            return True

    def mark_stuck(self, running: Running) -> bool:
        with self._mutex:
            first = not running.stuck
            running.stuck = True
            self.ended.set()
            return first

    def body_ended(self, running: Running) -> bool:
        """Record that the body is over; True if its claim is still ours, so that its outcome is to be recorded."""
        with self._mutex:
            ours = running.key in self._running and not running.outcome_known
            running.outcome_known = True
            running.phase = Phase.ENDED
            running.ended_at = self._boot()
            if self._leftovers:
                self._leftovers = [other for other in self._leftovers if other is not running]
            self._notify_ended()
            return ours

    def unrecorded_since(self) -> float | None:
        """Boot time of the earliest end that is not in the store yet."""
        with self._mutex:
            return min((r.ended_at for r in self._running.values() if r.ended_at is not None), default=None)

    def stopped(self, running: Running) -> Stop | None:
        """Return the reason to stop, if there is one. The body itself calls it: a frozen node finds out here first."""
        stop = running.stop
        if stop is not None:
            return stop
        with self._mutex:
            ours = self.lease.trust.holds(running.session, self._boot())
        return None if ours else Stop("lost", "this node could not renew its lease in time")

    def done(self, some: Iterable[Running]) -> None:
        """Take out claims whose ends are in the store, or will never be."""
        with self._mutex:
            now = self._boot()
            self._done.forget_old(now)
            for running in some:
                if self._running.pop(running.key, None) is not None:
                    self._done.add(running.key, now)
            self._notify_ended()

    def _notify_ended(self) -> None:
        """Set the event. The mutex is held and the change made: a caller that clears it afterwards sees the change."""
        if not self.ended.is_set():
            self.ended.set()

    def abandon(self, running: Running) -> bool:
        """Give a stuck body up: its claim is ended, but the body still keeps this node from claiming the job."""
        with self._mutex:
            if running.key not in self._running or running.outcome_known:
                return False
            running.outcome_known = True
            running.ended_at = self._boot()
            self._leftovers.append(running)
            return True

    def running(self) -> list[Running]:
        with self._mutex:
            return list(self._running.values())

    def bodies(self) -> list[Running]:
        """Return everything that still executes here, leftovers included."""
        with self._mutex:
            current = [running for running in self._running.values() if running.phase is Phase.BEGUN]
            return [*current, *(r for r in self._leftovers if r not in current)]
