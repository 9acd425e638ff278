"""Finds dead nodes, buries their sessions and takes their runs over; frees holds that name no session at all.

`lease/liveness.py` decides, by two clocks, that a session is dead. This module decides when to look, and what follows.
"""

from __future__ import annotations

from collections.abc import Sequence

from solocron.engine.housekeeping import Housekeeping
from solocron.engine.namespace_gate import NamespaceGate
from solocron.engine.node_context import NodeContext
from solocron.engine.registrar import Registrar
from solocron.engine.takeover import Takeover
from solocron.lease.liveness import Authority, Liveness, Mode
from solocron.lease.own import OwnLease
from solocron.model.documents.namespace import Openness
from solocron.model.documents.session import Life, Session
from solocron.stores.documents import QUEUES
from solocron.stores.paging import read_sessions

__all__ = ["Sweeper"]


class Sweeper:
    """Watches the other sessions of the namespace and sleeps to the earliest expiry."""

    def __init__(
        self,
        context: NodeContext,
        lease: OwnLease,
        gate: NamespaceGate,
        takeover: Takeover,
        registrar: Registrar,
    ) -> None:
        self._context = context
        self._lease = lease
        self._gate = gate
        self._takeover = takeover
        self._registrar = registrar
        self._liveness = Liveness(context.store, context.runtime, context.settings.node, lease)
        self._housekeeping = Housekeeping(context, lease, gate, takeover.small_documents)
        self._swept_last = ""
        """Name of the dead session that this node tried to sweep last."""

    def step(self, now: float) -> float:
        """Look at every session once; return when the earliest may be dead."""
        own, settings = self._lease.session, self._context.settings
        if own is None or not self._gate.checked:
            # The store's view of the other sessions may be an old one: this node looks once it has checked.
            return now + settings.beat
        # Holders before sessions: a claim needs a live session, so a holder that no later read knows is really gone.
        is_time = self._housekeeping.is_due(now)
        holders = self._context.store.holders() if is_time else frozenset()
        sessions = self.sessions()
        moments = [now + settings.lease]
        for session in _to_look_at(sessions, own):
            if session.state is Life.DEAD:
                continue
            if not self._bury(session, Mode.WATCH, own):
                moments.append(max(self._liveness.due(session.name) or now, now))
            elif not self.sweep(session):
                moments.append(now + settings.beat)
        moments.append(self._sweep_dead(sessions, own, now))
        self._context.signals.claim.alone = not any(
            session.state is Life.LIVE and session.pools and session.name != own for session in sessions
        )
        self._liveness.keep_only(session.name for session in sessions)
        self._registrar.review(sessions)
        if is_time:
            self._housekeeping.begin(now)
            self._free_unknown(holders, sessions)
        return min(*moments, self._housekeeping.step())

    def _sweep_dead(self, sessions: Sequence[Session], own: str, now: float) -> float:
        """Sweep what was buried before, for a beat at most; return when to go on.

        Every session takes several requests, and an outage may leave hundreds. To sweep them all in one step would keep
        this node from noticing who dies meanwhile. If every node took them in the order of their names, all would do
        the same work at the same time, and begin anew with each error of the store. So each begins after its own
        session, and goes on where its last step ended, also if that failed.
        """
        settings, boot = self._context.settings, self._context.runtime.clock.boot
        after, again = self._swept_last or own, now + settings.lease
        dead = [session for session in _to_look_at(sessions, own) if session.state is Life.DEAD]
        for session in sorted(dead, key=lambda one: (one.name <= after, one.name)):
            if boot() > now + settings.beat:
                return now
            self._swept_last = session.name
            if not self.sweep(session):
                again = now + settings.beat
        return again

    def sessions(self) -> list[Session]:
        return read_sessions(self._context.store)

    def sweep_for_tick(self) -> None:
        """Sweep in a lone pass: if no other node watches, the store's clock alone decides which sessions are dead."""
        own = self._lease.session
        if own is None:
            return
        holders = self._context.store.holders()
        sessions = self.sessions()
        now = self._context.store.clock()
        for session in _to_look_at(sessions, own):
            if session.state is Life.DEAD or self._bury(session, Mode.TICK, own, now):
                self.sweep(session)
        self._free_unknown(holders, sessions)

    def review_noted(self) -> bool:
        """Propose the jobs that the claimer could not decide; False if there are none, or nothing was proposed."""
        return self._registrar.has_notes and self._registrar.review()

    def _bury(self, session: Session, mode: Mode, own: str, now: int | None = None) -> bool:
        under = Authority(
            own,
            gate=lambda: self._gate.gate(Openness.OPEN, Openness.CHECKING),
            allows=self._gate.may_bury,
            renew=self._context.signals.keep.renew,
        )
        if not self._liveness.bury_if_over(session, mode, now=now, under=under):
            return False
        node = self._context.settings.node
        self._context.events.emit("session buried", session=session.name, node=session.node, by=node)
        self._context.runtime.failpoint("buried")
        return True

    def sweep(self, session: Session) -> bool:
        """Take over everything that a dead session holds; False if something is left.

        While the store is being checked nothing is taken over: its node may be about to put back what was lost.
        """
        own = self._lease.session
        if own is None or not self._gate.is_open:
            return False
        return self._takeover.take_all(session, by=own, gate=self._gate.gate())

    def _free_unknown(self, holders: frozenset[str], sessions: Sequence[Session]) -> None:
        """Free the holds of sessions that do not exist, or were swept; `holders` were read before `sessions`."""
        own = self._lease.session
        if own is None or not self._gate.is_open:
            return
        known = {session.name for session in sessions if session.state is not Life.SWEPT}
        for session in sorted(holders - known - {own, QUEUES}):
            reason = "its session does not exist any more"
            self._takeover.take_from(session, reason, by=own, gate=self._gate.gate())


def _to_look_at(sessions: Sequence[Session], own: str) -> list[Session]:
    return [session for session in sessions if session.name != own and session.state is not Life.SWEPT]
