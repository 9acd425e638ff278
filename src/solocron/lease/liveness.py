"""Bury the sessions of dead processes. This is the only place that decides that another process is dead.

Expiry by the store's clock is necessary for a burial and never sufficient: one leap of that clock would bury a whole
fleet, whose bodies still run. So a session is buried when the store's clock says expired *and* this process has seen it
unchanged, on its own boot clock, for the time that was left (rule 5 of the lease protocol). How much was left is known
only by a clock that has run evenly since the renewal; where this process cannot vouch for that, it watches for a whole
lease. It cannot vouch for a time in which it was out of touch with the store either: the store may have gone back
meanwhile, and show a session as it was before renewals that this process has never seen.

The commit of a node's burial tests that the store still has the node's own last renewal. So that renewal must be one
that was sent after the other lease had ended: if the store has gone back since, it has lost nothing of the other
session that was in time. A process that looks only once has no time to watch: there the store's clock decides alone,
unless a node is there to watch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from solocron.clock import SECOND
from solocron.lease.own import OwnLease
from solocron.model.change import Kind
from solocron.model.documents.session import Life, Session, bury
from solocron.runtime import Runtime
from solocron.stores.contract import Gate, Named, Store, Verdict
from solocron.stores.paging import find_session, read_sessions

__all__ = ["Authority", "Liveness", "Mode"]

SOON = 0.05
"""Seconds after which a burial that the store declined is tried again: its clock is a moment behind ours."""


class Mode(StrEnum):
    """Callers of a burial, and so how long the session must have been silent."""

    WATCH = "watch"
    """A process that looks again and again: the time that was left, or a lease, on its own clock."""
    TICK = "tick"
    """A process that looks once: the store's clock alone, unless a node watches."""
    REPAIR = "repair"
    """A person's command: a whole lease on its own clock, whatever the store's clock says was left."""


@dataclass(frozen=True, slots=True)
class Authority:
    """Session and gate under which a node buries, and whether the state of its namespace allows it."""

    session: str
    gate: Callable[[], Gate]
    allows: Callable[[Session, int], bool]
    """Called with the session and the store's time, right before the burial."""
    renew: Callable[[], None]
    """Asks the node to renew its own session now."""


@dataclass(slots=True)
class _Watched:
    beats: int
    since: float
    """Boot time at which the watch began."""
    over: float
    """Boot time at which it may be buried, if it has not been renewed by then."""
    again: float = 0.0
    """Boot time of the next try, after one that was declined."""

    @property
    def next_try(self) -> float:
        """Boot time of the next look; never before the silence that the rule requires has passed."""
        return max(self.over, self.again)


class Liveness:
    """This process's observations of other sessions, and the right to bury them."""

    def __init__(self, store: Store, runtime: Runtime, by: str, lease: OwnLease | None = None) -> None:
        """Name this process (`by`). `lease`, if it has one, knows how the store's clock has run."""
        self._store = store
        self._runtime = runtime
        self.by = by
        self._lease = lease
        self._watched: dict[str, _Watched] = {}

    def bury_if_over(
        self, session: Session, mode: Mode, *, now: int | None = None, under: Authority | None = None
    ) -> bool:
        """Bury a live session if both clocks say that it is over; True if this call has buried it.

        `now` is the store's time if the caller has just observed it. The commit compares the expiry with the store's
        clock in any case, and declines if the session was renewed since it was read.
        """
        watched = self.watch(session, mode)
        if not self._is_over(session, mode, watched, now, under):
            return False
        if under is not None and mode is Mode.WATCH and self._renewed_at() < watched.over:
            watched.again = self._runtime.clock.boot() + SOON
            under.renew()
            return False
        if under is not None and not self._allowed(session, now, under):
            watched.again = self._runtime.clock.boot() + session.lease / SECOND / 12
            return False
        if self._bury(session, mode, under):
            self.forget(session.name)
            return True
        watched.again = self._runtime.clock.boot() + SOON
        return False

    def is_dead(self, name: str, mode: Mode, *, now: int) -> bool:
        """Return whether what a session holds may be taken: it is gone, dead, or over and buried by this call."""
        session = find_session(self._store, name)
        if session is None or session.state is not Life.LIVE:
            self.forget(name)
            return True
        return self.bury_if_over(session, mode, now=now)

    def watch(self, session: Session, mode: Mode) -> _Watched:
        """Begin to watch a session, or begin anew: it was renewed, or this process was out of touch with the store."""
        watched = self._watched.get(session.name)
        if watched is None or watched.beats != session.beats or watched.since < self._in_touch_since():
            until = self._silent_until(session, mode, watched)
            watched = self._watched[session.name] = _Watched(session.beats, self._runtime.clock.boot(), until)
        return watched

    def due(self, name: str) -> float | None:
        """Boot time at which the session may be buried, if it is not renewed by then; None if it is not watched."""
        watched = self._watched.get(name)
        return None if watched is None else watched.next_try

    def forget(self, name: str) -> None:
        self._watched.pop(name, None)

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget every session that is not among these."""
        kept = set(names)
        self._watched = {name: watched for name, watched in self._watched.items() if name in kept}

    # --- the rule --------------------------------------------------------------------------------------------------

    def _silent_until(self, session: Session, mode: Mode, before: _Watched | None) -> float:
        """Return when a session that was just seen renewed may be buried, if it is not renewed again.

        One with fewer renewals than `before` went back: it says nothing of what is left.
        """
        boot, lease = self._runtime.clock.boot(), session.lease / SECOND
        went_back = before is not None and session.beats < before.beats
        if mode is not Mode.WATCH or self._lease is None or went_back:
            return boot + lease
        at = self._lease.boot_of(session.expires_at)
        evenly = self._lease.ran_evenly_since(session.expires_at - session.lease)
        if at is None or at <= boot or not evenly or at - lease < self._in_touch_since():
            return boot + lease
        return min(at, boot + lease)

    def _renewed_at(self) -> float:
        return inf if self._lease is None else self._lease.renewed_at()

    def _in_touch_since(self) -> float:
        return 0.0 if self._lease is None else self._lease.in_touch_since()

    def _is_over(
        self, session: Session, mode: Mode, watched: _Watched, now: int | None, under: Authority | None
    ) -> bool:
        if now is not None and session.expires_at > now:
            return False
        if self._runtime.clock.boot() >= watched.next_try:
            return True
        return mode is Mode.TICK and now is not None and not self._is_watched(session, now, under)

    def _is_watched(self, session: Session, now: int, under: Authority | None) -> bool:
        """Return whether a live node watches the session. A session without pools belongs to no node and watches none.

        A node of this process watches whatever the store's clock says: a leap of it has expired them all. A session of
        this very process is left to the watch for the same reason: its process is alive, because it asks.
        """
        own = None if under is None else under.session
        if own is None and session.node == self.by:
            return True
        nodes = [
            s
            for s in read_sessions(self._store)
            if s.name not in (session.name, own) and s.pools and s.state is Life.LIVE
        ]
        return any(node.expires_at > now or (own is None and node.node == self.by) for node in nodes)

    def _allowed(self, session: Session, now: int | None, under: Authority) -> bool:
        known = now if now is not None or self._lease is None else self._lease.store_now()
        return known is not None and under.allows(session, known)

    def _bury(self, session: Session, mode: Mode, under: Authority | None) -> bool:
        """Mark the session as dead, unless it was renewed since it was read, or the store has gone back."""
        by = "doctor --repair" if mode is Mode.REPAIR else self.by
        asked = self._runtime.clock.boot()
        applied = self._store.update(
            Named(Kind.SESSION, (session.name,)),
            lambda doc, at: bury(doc, now=at, reason=f"not renewed in time, buried by {by}", seen=session.beats, by=by),
            session=None if under is None else under.session,
            gate=None if under is None else under.gate(),
        )
        if self._lease is not None:
            self._lease.observe(applied.now, asked=asked, replied=self._runtime.clock.boot())
        return bool(applied.results) and applied.results[0].verdict is Verdict.APPLIED
