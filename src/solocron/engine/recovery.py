"""The check that follows when the store went back: begin it or join it, put back what is remembered, open again.

Everything here runs on the thread that renews the session: a node that can renew can check. The rules, and what each of
them prevents, are in docs/explanation/going-back.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from solocron.clock import SECOND
from solocron.engine.namespace_gate import NamespaceGate, change_namespace, gate_of_epoch
from solocron.engine.node_context import NodeContext
from solocron.engine.pause_log import PauseLog
from solocron.engine.put_back import Overtaken, PutBack
from solocron.engine.signs import Signs
from solocron.errors import StoreUnavailable
from solocron.lease.holder import Fate, Holder
from solocron.model.change import Kind
from solocron.model.documents import namespace as model
from solocron.model.documents.namespace import Namespace, Openness
from solocron.model.documents.session import Life, Session
from solocron.stores.contract import ChangeFn, Gate, Named
from solocron.stores.paging import read_namespace, read_sessions

__all__ = ["Recovery"]


class Recovery:
    """One node's part in the check of its namespace."""

    def __init__(self, context: NodeContext, gate: NamespaceGate, holder: Holder, put_back: PutBack) -> None:
        self._context = context
        self.gate = gate
        self.holder = holder
        self.put_back = put_back
        self._signs = Signs(context, holder)
        self._pauses = PauseLog(context)
        self._accounted = False
        """True if this node's losses were taken into account, so that its session may be lifted."""

    # --- around a session ------------------------------------------------------------------------------------------

    def join(self) -> None:
        """Read the namespace before a session begins; make it if there is none, begin a check if there is a sign."""
        if self._signs.former_sessions_went_back():
            self.gate.stale = True
        known = self._look()
        if not self.gate.epoch and not self.put_back.remembers(known.epoch):
            self.gate.epoch = known.epoch  # this process has just begun and remembers nothing that could be missing
            self.gate.known = known

    def renewed(self, session: Session, asked: float, observed: tuple[str, str] | None) -> None:
        """The store acknowledged a renewal, and said this of the namespace and the server."""
        self._signs.observed_at = asked
        self.gate.renewed(session, asked)
        self.gate.observe(observed)
        self._report_pauses()

    def went_back(self, doc: object, session: str) -> bool:
        """Return whether the document of a session of ours is older than what the store has acknowledged."""
        if not self._signs.session_went_back(doc, session):
            return False
        self.gate.stale = True
        return True

    def next_look(self, planned: float) -> float:
        """Return when to look at the namespace again: soon while it is being checked, at the latest when planned."""
        known, settings = self.gate.known, self._context.settings
        now = self._context.runtime.clock.boot()
        if self.gate.newcomer.waits:
            return min(planned, now + settings.soon)
        if known is None or known.openness is not Openness.CHECKING:
            return planned
        over = self.holder.lease.boot_of(known.since + round(settings.barrier * SECOND))
        return max(now, over) if over is not None and over > now else now + settings.beat / 8

    # --- the check -------------------------------------------------------------------------------------------------

    def attend(self, session: str, running: int, between: Callable[[], None]) -> bool:
        """Do what the state of the namespace requires of this node; True if its claims can be believed.

        `running` is the number of runs to write with a renewal; `between` renews the session during long work.
        """
        gate = self.gate
        if gate.idle:
            return True
        try:
            known = self._look()
            if known.epoch != gate.epoch:
                self._check(known, session, running, between)
            if known.openness is Openness.CHECKING:
                known = self._try_to_open(known, session, between)
        except Overtaken:
            gate.stale = True
            return False
        gate.known = known
        gate.stale = False
        self._report_pauses()
        # Also if the namespace is as it was: both may have looked meanwhile, and found that they may do nothing.
        self._context.signals.claim.look_again()
        self._context.signals.sweep.wake()
        return True

    def release(self, session: str, between: Callable[[], None]) -> None:
        """Release what this process gave up while the store did not answer, or did not have it."""
        left = self.put_back.unreleased()
        if not left or not self.gate.is_open:
            return
        try:
            self.put_back.release(session, self.gate.gate(), between, left)
        except Overtaken:
            self.gate.stale = True

    def _report_pauses(self) -> None:
        known, now = self.gate.known, self.holder.lease.store_now()
        if known is not None and now is not None:
            self._pauses.look(known.pauses, now)

    def _look(self) -> Namespace:
        """Return the namespace as it is; begin a check first if this node has met a sign that the store went back."""
        identity = self._context.store.identity()
        found = self._read()
        if found is None and (self.gate.known is None and self._signs.lost is None):
            token = self._context.runtime.rng.token()
            found = self._sure(lambda doc, at: model.establish(doc, identity=identity, token=token))
        count = 0 if self.gate.known is None else self.gate.known.count
        self._signs.epoch_went_back(0 if found is None else found.count, count)
        if found is None or found.identity != identity or self._signs.lost is not None:
            found = self._begin_check(identity, count)
        self._report(found)
        if self.gate.known is None or self.gate.known.count < found.count:
            self.gate.known = found
        self._signs.epoch_seen(found)
        return found

    def _begin_check(self, identity: str, count: int) -> Namespace:
        token, lost = self._context.runtime.rng.token(), self._signs.lost
        if (lost or 0.0) > 2 * self._context.settings.lease:
            found = self._sure(lambda doc, at: model.close(doc, identity=identity, known=count, token=token, now=at))
        else:
            checked = self.gate.epoch
            found = self._sure(
                lambda doc, at: model.begin_check(
                    doc, identity=identity, known=count, checked=checked, token=token, now=at
                )
            )
        self._accounted = lost is not None
        self._signs.accounted()
        return found

    def _report(self, found: Namespace) -> None:
        known, events = self.gate.known, self._context.events
        if known is not None and known.gate == found.gate:
            return
        node, epoch, server = self._context.settings.node, found.epoch, found.identity
        if found.openness is Openness.CHECKING and (known is None or known.epoch != found.epoch):
            events.emit("store went back", node=node, epoch=epoch, server=server)
        elif found.openness is Openness.CLOSED:
            events.emit("namespace closed", node=node, epoch=epoch, server=server)
        elif known is not None and known.openness is not Openness.OPEN:
            events.emit("namespace open", node=node, epoch=epoch, server=server)

    def _check(self, known: Namespace, session: str, running: int, between: Callable[[], None]) -> None:
        """Put back what this node remembers and the store has lost, then mark the session with the epoch."""
        epoch = known.epoch
        own = self._context.store.read(Named(Kind.SESSION, (session,)))
        if not self._accounted and self.went_back(own[0] if own else None, session):
            raise Overtaken  # the extent of the loss decides, even if another node has begun the check
        self._renew(
            session, running, lift=True
        )  # one that came back with an old count is refused everything until it is lifted
        self._accounted = False
        gate = Gate(self.holder.lease.beats, (f"{Openness.OPEN} {epoch}", f"{Openness.CHECKING} {epoch}"))
        self.put_back.everything(known, session, gate, between)
        self._renew(session, running, mark=epoch)
        self.put_back.definitions(between)
        self.gate.epoch = epoch

    def _renew(self, session: str, running: int, *, lift: bool = False, mark: str | None = None) -> None:
        """Renew: lift an old count to what was acknowledged, or mark the session with an epoch that is checked.

        What this node has put back may be lost again before the mark is written. So the commit of a mark tests that the
        session is as new as the node knows it, and that server and epoch are the ones that it has checked.
        """
        gate = None if mark is None else gate_of_epoch(self.holder.lease.beats, mark)
        renewal = self.holder.renew(session, running=running, mark=mark, lift=lift, gate=gate)
        if renewal.fate is Fate.UNCERTAIN:
            raise StoreUnavailable(f"the session could not be renewed ({renewal.verdict}); trying again")
        if renewal.fate is not Fate.RENEWED:
            raise Overtaken  # it is dead, gone or lost: the next renewal says so, and a new session begins

    def _try_to_open(self, known: Namespace, session: str, between: Callable[[], None]) -> Namespace:
        """End the check once every live node has taken part and each has had the time to."""
        barrier = round(self._context.settings.barrier * SECOND)
        now = self.holder.lease.store_now()
        if now is None or now < known.since + barrier:
            return known
        if not all_marked(read_sessions(self._context.store), known.epoch):
            return known
        if known.doubt:
            self.put_back.write_off(known, session, self.gate.gate(Openness.CHECKING), between)
        # Tested in the commit of the opening: the marks, and what was written off, are on the server that commits it.
        opened = change_namespace(
            self._context.store,
            lambda doc, at: model.open_again(doc, epoch=known.epoch, now=at, barrier=barrier, doubt=known.doubt),
            session=session,
            gate=self.gate.gate(Openness.CHECKING, Openness.OPEN),
        )
        if opened is None:
            raise Overtaken
        self._report(opened)
        return opened

    # --- the document ----------------------------------------------------------------------------------------------

    def _read(self) -> Namespace | None:
        return read_namespace(self._context.store)

    def _sure(self, change: ChangeFn) -> Namespace:
        found = change_namespace(self._context.store, change)
        assert found is not None
        return found


def all_marked(sessions: Iterable[Session], epoch: str) -> bool:
    """Return whether every live process that runs bodies has checked this epoch; one that only holds locks does not.

    A worker serves no pool, and remembers what it has picked up.
    """
    return all(s.epoch == epoch for s in sessions if s.state is Life.LIVE and (s.pools or s.max_running))
