"""Renews the session from a loop of its own; a blocked event loop or a slow claim cannot delay a renewal.

With every beat the node also compares its holds with the store's (`reconciler`) and looks after its namespace
(`recovery`). Where the reply to the renewal says that the session holds nothing, and nothing runs, that was the look.
The progress of the runs rides in the session with the renewal.
"""

from __future__ import annotations

from dataclasses import replace

from solocron.engine.attempts import Attempts
from solocron.engine.node_context import NodeContext
from solocron.engine.reconciler import Reconciler
from solocron.engine.recovery import Recovery
from solocron.engine.session_loss import SessionLoss
from solocron.errors import StoreError
from solocron.lease.holder import Fate, Renewal
from solocron.model.documents.session import Life, Session, trimmed_progress

__all__ = ["Keeper"]


class Keeper:
    """Holds one session after the other for as long as the node lives."""

    def __init__(
        self, context: NodeContext, attempts: Attempts, recovery: Recovery, reconciler: Reconciler, loss: SessionLoss
    ) -> None:
        self._context = context
        self._attempts = attempts
        self._recovery = recovery
        self._holder = recovery.holder
        self._reconciler = reconciler
        self._loss = loss
        self._failures = 0
        self._next = 0.0
        """Boot time of the next renewal."""
        self._holds_nothing = False
        """Reply of the last renewal; valid for that one only."""
        self._seen_at = 0
        """Store time of the last renewal."""

    @property
    def failing(self) -> bool:
        """True if the last renewal was not acknowledged."""
        return self._failures > 0

    def step(self, now: float) -> float:
        """Renew what is due; return when to be called again."""
        lease = self._attempts.lease
        if lease.session is None:
            again = self._holder.next_beat(now)
            if now >= self._loss.rests_until:
                self._begin(now)
            if lease.session is not None:
                self._attend(lease.session)
                again = self._next
            self._close_lost_sessions()
            return self._recovery.next_look(again)
        session, keep = lease.session, self._context.signals.keep
        if now >= self._next or keep.renews:
            renews, keep.renews = keep.renews, False
            if not self._renew(session):
                return self._holder.next_try()
            self._next = self._holder.next_beat(now)
            if renews:
                self._context.signals.sweep.wake()
        else:
            self._holds_nothing = False
        self._recovery.gate.newcomer.look_at_others()
        if not self._attend(session):
            return self._holder.next_try()
        if self._holds_nothing and not self._attempts.running():
            self._reconciler.nothing_held(session, self._seen_at)
        else:
            self._reconciler.reconcile(session, self._recovery.gate.epoch, self._seen_at)
        self._recovery.release(session, self.keep)
        self._close_lost_sessions()
        return min(self._next, self._recovery.next_look(self._next))

    def keep(self) -> None:
        """Renew if it is due: called in the middle of long work on the very thread that renews."""
        session, now = self._attempts.lease.session, self._context.runtime.clock.boot()
        if session is not None and now >= self._next and self._renew(session):
            self._next = self._holder.next_beat(now)

    def _begin(self, now: float) -> None:
        """Begin a session and write the definitions under it."""
        if self._attempts.draining:
            return
        settings, signals = self._context.settings, self._context.signals
        self._context.store.open()
        self._recovery.join()
        described = self._recovery.put_back.registrar.describe()
        session, seen_at = self._holder.begin(replace(described, epoch=self._recovery.gate.epoch))
        # First, and whatever the store replies next: without it nothing would notice that this session is over.
        signals.watch.wake()
        self._failures = 0
        self._seen_at = self._reconciler.looked_at = seen_at
        self._next = now + settings.soon
        self._context.events.emit("session begun", session=session, node=settings.node, lease_s=settings.lease)
        try:
            self._recovery.gate.newcomer.begun(session)
            self._recovery.put_back.definitions(self.keep)
        finally:
            signals.claim.wake()

    def _attend(self, session: str) -> bool:
        return self._recovery.attend(session, len(self._attempts.running()), self.keep)

    def _renew(self, session: str) -> bool:
        """Renew once; True if the session is held."""
        self._context.runtime.failpoint("renewing")
        asked = self._context.runtime.clock.boot()
        try:
            running = self._attempts.running()
            told = tuple((*one.key, trimmed_progress(how)) for one in running if (how := one.progress) is not None)
            renewal = self._holder.renew(session, running=len(running), progress=told)
        except StoreError as error:
            return self._trouble(str(error))
        except Exception as error:
            self._trouble(repr(error))
            raise
        if renewal.fate is Fate.UNCERTAIN:
            return self._trouble(_why(renewal))
        if renewal.fate is Fate.LATE:
            self._loss.lose("its lease was renewed too late")
            return False
        if renewal.fate is Fate.REFUSED:
            return self._refused(renewal, session)
        assert isinstance(renewal.doc, Session)
        node = self._context.settings.node
        if self._failures:
            self._context.events.emit("store back", node=node, after=self._failures)
        self._failures = 0
        self._seen_at = renewal.applied.now or self._seen_at
        self._holds_nothing = renewal.applied.holds is False
        self._recovery.renewed(renewal.doc, asked, renewal.applied.gate)
        skew = renewal.doc.report.skew
        self._context.events.emit(
            "session renewed", session=session, node=node, skew_s=None if skew is None else skew / 1_000_000
        )
        return True

    def _refused(self, renewal: Renewal, session: str) -> bool:
        """Handle a renewal whose session is dead, or older in the store than its last renewal.

        A live session that went back is kept: its node checks what it remembers, and then renews it again. If the
        session is dead or missing in the state that came back, it is lost all the same; the next session begins the
        check.
        """
        back = self._recovery.went_back(renewal.doc, session)
        live = isinstance(renewal.doc, Session) and renewal.doc.state is Life.LIVE
        if live:
            return self._attend(session) if back else self._trouble("a later renewal was faster")
        self._loss.lose("the store went back to before it began" if back else "its session was buried")
        return False

    def _trouble(self, error: str) -> bool:
        self._failures += 1
        self._recovery.gate.no_answer()
        left = max(0.0, (self._attempts.lease.trusted_until() or 0.0) - self._context.runtime.clock.boot())
        self._context.events.emit(
            "renewal failed", node=self._context.settings.node, error=error, failures=self._failures, trusted_for_s=left
        )
        return False

    def _close_lost_sessions(self) -> None:
        """Close the lost sessions whose bodies have ended, so that no node has to wait for their lease.

        Not before the node has checked what it remembers: a session without the mark holds the opening back. Without a
        session of its own the node lets the store compare: the namespace is as it has checked it.
        """
        gate = self._recovery.gate
        checked = self._attempts.lease.session is not None and gate.checked
        for session in self._attempts.sessions_to_close():
            closed = self._holder.close(
                session,
                "its node lost it and has stopped its bodies",
                gate=None if checked else gate.gate_of(session),
            )
            if not closed.shut:
                self._attempts.session_closed(session)


def _why(renewal: Renewal) -> str:
    declined = renewal.verdict == "declined"
    return "a later renewal was faster" if declined else f"the renewal's outcome is {renewal.verdict}"
