"""Finds dead nodes, buries their sessions and takes their runs over; frees holds that name no session at all.

A session is buried only when the store's clock says expired *and* the time that was left when this node last saw it
change has passed on this node's own boot clock. How much was left can be told only by a clock that has run evenly since
the renewal; where this node cannot vouch for that, it watches a whole lease. So a step of the store's clock costs
nobody a session, whether it comes before the sweeper has looked or after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from solocron.engine.attempts import Board
from solocron.engine.calendars import Calendars
from solocron.engine.recovery import Recovery
from solocron.engine.settings import Settings
from solocron.engine.small_documents import SmallDocuments
from solocron.events import Events
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.model.documents.namespace import Openness
from solocron.model.documents.session import Life, Session, bury, swept
from solocron.model.timetable import Resolve
from solocron.model.transitions.finishing import PAUSED, take_over
from solocron.runtime import Runtime
from solocron.stores.contract import All, Gate, HeldBy, Named, Result, Store, Verdict

__all__ = ["Sweeper"]

PRUNE_BATCH = 500
PRUNE_BATCHES = 10
"""Batches in one step; where more is old, the next step follows at once, after a look at the sessions."""
PRUNE_PAUSE = 0.05
"""Seconds in between, in which the store has time for others."""


@dataclass(slots=True)
class _Watch:
    beats: int
    over: float
    """Boot time at which it may be buried, if it has not changed by then."""


class Sweeper:
    """Watches the other sessions of the namespace and sleeps to the earliest expiry."""

    def __init__(
        self,
        *,
        store: Store,
        board: Board,
        runtime: Runtime,
        settings: Settings,
        events: Events,
        resolve: Resolve,
        recovery: Recovery,
        wake_claimer: Callable[[int | None], None],
        fleet_changed: Callable[[list[Session]], object],
        calendars: Calendars | None = None,
    ) -> None:
        self._store = store
        self._board = board
        self._runtime = runtime
        self._settings = settings
        self._events = events
        self._resolve = resolve
        self._recovery = recovery
        self._wake_claimer = wake_claimer
        self._fleet_changed = fleet_changed
        self._notes = SmallDocuments(store)
        self._calendars = calendars
        self._watched: dict[str, _Watch] = {}
        self._housekeeping = 0.0
        self._pruning = False

    def step(self, now: float) -> float:
        """Look at every session once; return when the earliest may be dead."""
        own = self._board.session
        if own is None or not self._recovery.checked:
            # What the store says of the others may be of an earlier time: this node looks once it has checked.
            return now + self._settings.beat
        # Holders before sessions: a claim needs a live session, so a holder that no later look knows is really gone.
        housekeeping = now >= self._housekeeping
        holders = self._store.holders() if housekeeping else frozenset()
        sessions = self.sessions()
        moments = [now + self._settings.lease]
        for session in sessions:
            if session.name == own or session.state is Life.SWEPT:
                continue
            if session.state is Life.DEAD or self._dead(session, now, own):
                if not self.sweep(session):
                    moments.append(now + self._settings.beat)
            else:
                moments.append(max(self._watched[session.name].over, now))
        self._board.peers = sum(
            1 for s in sessions if s.state is Life.LIVE and s.pools and s.name != self._board.session
        )
        alive = {session.name for session in sessions}
        self._watched = {name: watch for name, watch in self._watched.items() if name in alive}
        self._fleet_changed(sessions)
        if housekeeping:
            self._housekeeping = now + max(4 * self._settings.lease, 60.0)
            self._free_unknown(holders, sessions)
            self._pruning = True
            if self._calendars is not None and self._calendars.follow(self._settings.late_for):
                self._wake_claimer(None)
        if self._pruning:
            self._pruning = False  # an error of it is not repeated before the next round
            self._pruning = self._prune()
        if self._pruning:
            moments.append(self._runtime.clock.boot() + PRUNE_PAUSE)
        return min(moments)

    def sessions(self) -> list[Session]:
        return [doc for doc in self._store.read(All(Kind.SESSION)) if isinstance(doc, Session)]

    def sweep_for_tick(self) -> None:
        """For a lone pass: what is dead is swept; where no other node watches, the store's clock alone decides."""
        own = self._board.session
        if own is None:
            return
        holders = self._store.holders()
        sessions = self.sessions()
        now = self._store.clock()
        others = [s for s in sessions if s.name != own and s.state is Life.LIVE]
        # A session without pools belongs to a process that holds a lock or a key: it sweeps nobody.
        watched = any(session.pools and session.expires_at > now for session in others)
        for session in sessions:
            if session.name == own or session.state is Life.SWEPT:
                continue
            may_bury = not watched and self._recovery.may_bury(session, now)
            if session.state is Life.DEAD or (may_bury and self._bury(session, own)):
                self.sweep(session)
        self._free_unknown(holders, sessions)

    def _dead(self, session: Session, now: float, own: str) -> bool:
        """Whether it may be buried by both clocks, and now is."""
        watch = self._watched.get(session.name)
        if watch is None or watch.beats != session.beats:
            self._watched[session.name] = _Watch(session.beats, self._over(session))
            return False
        if now < watch.over:
            return False
        store_now = self._board.store_now()
        if store_now is None or not self._recovery.may_bury(session, store_now):
            watch.over = now + self._settings.beat / 4
            return False
        return self._bury(session, own)

    def _over(self, session: Session) -> float:
        """When a session that was just seen changed may be buried, if it does not change again."""
        now, lease = self._runtime.clock.boot(), session.lease / 1_000_000
        at = self._board.boot_of(session.expires_at)
        if at is None or at <= now or not self._board.store_ran_evenly_since(session.expires_at - session.lease):
            return now + lease
        return min(at, now + lease)

    def _bury(self, session: Session, own: str) -> bool:
        """live to dead, unless it has been renewed since we looked, or the store has gone back."""
        reason = f"not renewed in time, buried by {self._settings.node}"
        asked = self._runtime.clock.boot()
        applied = self._store.update(
            Named(Kind.SESSION, (session.name,)),
            lambda doc, at: bury(doc, now=at, reason=reason, seen=session.beats),
            session=own,
            gate=self._recovery.gate(Openness.OPEN, Openness.CHECKING),
        )
        self._board.saw_store_time(applied.now, asked=asked, replied=self._runtime.clock.boot())
        if not applied.results or applied.results[0].verdict is not Verdict.APPLIED:
            watch = self._watched.get(session.name)
            if watch is not None:  # expired by our clock, not yet by the store's: look again in a moment
                watch.over = self._runtime.clock.boot() + 0.05
            return False
        self._events.emit("session buried", session=session.name, node=session.node, by=self._settings.node)
        self._runtime.failpoint("buried")
        return True

    def sweep(self, session: Session) -> bool:
        """Take over everything a dead session holds; it is swept only after a pass that skipped nothing.

        While the store is being checked nothing is taken over: its node may be about to put back what was lost.
        """
        own = self._board.session
        if own is None or not self._recovery.is_open:
            return False
        return self.take_all(session, by=own, gate=self._recovery.gate())

    def take_all(self, session: Session, *, by: str | None = None, gate: Gate | None = None) -> bool:
        """Take over everything a dead session holds and mark it swept; False when something is left."""
        reason = f"{session.node}: {session.reason or 'its node died'}"
        if not self.take_from(session.name, reason, by=by, gate=gate):
            return False
        self._store.update(
            Named(Kind.SESSION, (session.name,)), lambda doc, at: swept(doc, now=at), session=by, gate=gate
        )
        self._watched.pop(session.name, None)
        return True

    def take_from(self, session: str, reason: str, *, by: str | None = None, gate: Gate | None = None) -> bool:
        """End the holds of a session, of jobs, locks and keys; True when complete passes found nothing left.

        `by` is the session of the node that takes over. A node that leaves takes from itself, without one.
        """
        return self._take_jobs(session, reason, by, gate) and self._notes.take_from(session, by=by, gate=gate)

    def _take_jobs(self, session: str, reason: str, by: str | None, gate: Gate | None) -> bool:
        for _ in range(20):
            applied = self._store.update(
                HeldBy(session),
                lambda doc, at: take_over(doc, session=session, now=at, reason=reason, resolve=self._resolve),
                session=by,
                gate=gate,
            )
            if applied.shut or not applied.alive:
                return False
            if not applied.results:
                return True
            for result in applied.results:
                self._taken(result, session)
            if all(result.verdict is Verdict.APPLIED for result in applied.results):
                return True
        return False

    def _taken(self, result: Result, session: str) -> None:
        if result.verdict is Verdict.APPLIED and isinstance(result.doc, Job):
            self._events.emit(
                "taken over", job=result.name, session=session, by=self._settings.node, due_at=result.doc.due_at
            )
            if result.answer == PAUSED and result.doc.paused is not None:
                self._events.emit("paused", job=result.name, reason=result.doc.paused.note)
            self._wake_claimer(result.doc.due_at)

    def _free_unknown(self, holders: frozenset[str], sessions: list[Session]) -> None:
        """Holds of sessions that do not exist, or were swept, are nobody's; `holders` were read before `sessions`."""
        own = self._board.session
        if own is None or not self._recovery.is_open:
            return
        known = {session.name for session in sessions if session.state is not Life.SWEPT}
        for session in sorted(holders - known - {own}):
            self.take_from(session, "its session does not exist any more", by=own, gate=self._recovery.gate())

    def _prune(self) -> bool:
        """Old history in small batches, True when there is more; nothing that control logic reads is ever in it."""
        now = self._board.store_now()
        if now is None:
            return False
        total, more = 0, True
        while more and total < PRUNE_BATCHES * PRUNE_BATCH:
            removed = self._store.prune(now - self._settings.keep, PRUNE_BATCH)
            total += removed
            more = removed >= PRUNE_BATCH
        if not more:
            total += self._notes.prune(now=now, keep=self._settings.keep)
        if total:
            self._events.emit("pruned", records=total)
        return more
