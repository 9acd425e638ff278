"""A node's view of its namespace, and its rights there: claim, take over, bury.

The namespace's document (`model/documents/namespace.py`) is shut while the nodes check a store that went back. The
commit of every claim tests it; what is known here only saves a node from futile requests.
"""

from __future__ import annotations

from dataclasses import replace

from solocron.engine.memory import Memory
from solocron.engine.newcomer import Newcomer
from solocron.engine.node_context import NodeContext
from solocron.errors import StoreUnavailable
from solocron.lease.holder import Holder
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents import namespace as model
from solocron.model.documents.namespace import NAME, Namespace, Openness
from solocron.model.documents.scoped_pause import ScopedPause
from solocron.model.documents.session import Session
from solocron.model.transitions.giving_up import GivingUp
from solocron.stores.contract import ChangeFn, Gate, Named, Store, Verdict
from solocron.stores.until_known import update_until_known

__all__ = ["NamespaceGate", "change_namespace", "gate_of_epoch"]


class NamespaceGate:
    """The state of the namespace as this node last read it, and the epoch that this node has checked."""

    def __init__(self, context: NodeContext, holder: Holder, memory: Memory) -> None:
        self._context = context
        self._holder = holder
        self._memory = memory
        self.newcomer = Newcomer(context)
        self.known: Namespace | None = None
        """The namespace as this node last read it."""
        self.epoch = ""
        """The epoch that this node has checked and marked its session with."""
        self.stale = True
        """True if the namespace has to be read again before anything else."""

    # --- what the loops ask ----------------------------------------------------------------------------------------

    @property
    def checked(self) -> bool:
        """True if what the store says of this node's claims can be believed."""
        return not self.stale and self.known is not None and self.known.epoch == self.epoch

    @property
    def is_open(self) -> bool:
        """True if runs may be claimed and taken over."""
        return self.checked and self.known is not None and self.known.openness is Openness.OPEN

    @property
    def idle(self) -> bool:
        """True if the check needs nothing of this node until its next renewal."""
        return self.checked and self.known is not None and self.known.openness is not Openness.CHECKING

    def may_claim(self) -> bool:
        return self.is_open and self._context.runtime.clock.boot() >= self.newcomer.claims_from

    def claims_from(self) -> float | None:
        """Boot time at which a newcomer may claim, if that alone keeps it from doing so."""
        at = self.newcomer.claims_from
        return at if self.is_open and self._context.runtime.clock.boot() < at else None

    def may_bury(self, session: Session, now: int) -> bool:
        """Return whether the namespace allows burying a session that is expired by both clocks.

        During a check every session may be expired, because the store was unavailable: none is buried before a lease
        has passed. Burying a node that has not taken part leaves claims that no node remembers: that is recorded first.
        """
        known = self.known
        if not self.checked or known is None or known.openness is Openness.CLOSED:
            return False
        if known.openness is Openness.OPEN:
            return True
        if now < known.since + max(session.lease, self._context.settings.lease_us):
            return False
        if session.epoch == known.epoch:
            return True
        doubted = change_namespace(self._context.store, lambda doc, at: model.note_doubt(doc, epoch=known.epoch))
        return doubted is not None

    # --- what a commit tests ---------------------------------------------------------------------------------------

    def gate(self, *openness: Openness) -> Gate:
        """Return what the commit of a write tests; by default that claims are granted."""
        words = tuple(f"{one} {self.epoch}" for one in openness or (Openness.OPEN,))
        return Gate(self._holder.lease.beats, words)

    def as_checked(self) -> Gate:
        """Return what a commit tests that is right only in a store as this node has checked it, open or not."""
        return gate_of_epoch(self._holder.lease.beats, self.epoch)

    def for_claims(self) -> tuple[str, Gate, tuple[ScopedPause, ...]]:
        """Return the epoch, what the commit of a claim of runs tests, and the pauses that the claim has to consider.

        The commit tests that the pauses are still these: a pause that is written meanwhile refuses the claim, and so
        does one that is lifted, because its slots must not be skipped.
        """
        known = self.known  # read once: the keeper replaces it on a thread of its own
        gate = self.gate()
        if known is None:
            return self.epoch, gate, ()
        return self.epoch, replace(gate, pauses=known.mark), known.pauses

    def gate_of(self, session: str) -> Gate:
        """Return the same for a write under a session that this process has lost."""
        former = self._holder.former.get(session)
        return Gate(0 if former is None else former.beats, (f"{Openness.OPEN} {self.epoch}",))

    def wrote(self, kind: Kind, name: str, doc: object, gate: Gate | None) -> bool:
        """Remember a lock, a key or steps that the store acknowledged: they are put back if the store goes back.

        False if this node has checked another epoch since that commit: what it wrote may be lost and was not put back.
        A process that waits for a lock writes its ticket into the holder's document, which the holder puts back.
        """
        if not isinstance(doc, SmallDocument):
            self._memory.removed(kind, name)
        elif doc.session in (None, self._holder.lease.session, *self._holder.former):
            return self._memory.wrote(doc, gate)
        return True

    def giving_up(self, change: GivingUp) -> None:
        """Remember a release before it is sent, so that it is repeated until the store has acknowledged it."""
        self._memory.giving_up(change)

    def gave_up(self, change: GivingUp) -> None:
        """Record that the store has acknowledged the release."""
        self._memory.gave_up(change)

    # --- what the store said ---------------------------------------------------------------------------------------

    def shut(self) -> None:
        """Read the namespace again: a write was refused at the gate."""
        self.stale = True

    def observe(self, gate: tuple[str, str] | None) -> None:
        """Compare what a renewal observed of the namespace and the server; None if it observed nothing."""
        known = self.known
        if gate is None or known is None or gate != (known.gate, known.identity) or not self.checked:
            self.stale = True

    def no_answer(self) -> None:
        """Stop the ageing of what this process remembers: the store is unavailable."""
        self._memory.stand_still()

    def renewed(self, session: Session, asked: float) -> None:
        """Take an acknowledged renewal. A session that has lost its mark has to be marked again."""
        settings = self._context.settings
        if session.epoch != self.epoch:
            self.epoch = ""
        if self.is_open:
            self._memory.grow_older(asked, keep=2 * settings.lease + 2 * settings.beat)
        else:
            self._memory.stand_still()


def change_namespace(
    store: Store, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
) -> Namespace | None:
    """Change the namespace's document, again if another node was faster; None if change or gate declines."""
    applied = update_until_known(store, Named(Kind.NAMESPACE, (NAME,)), change, session=session, gate=gate)
    if applied.shut or not applied.alive:
        return None
    (result,) = applied.results
    if result.verdict is Verdict.APPLIED:
        assert isinstance(result.answer, Namespace)
        return result.answer
    if result.verdict is Verdict.DECLINED:
        return None
    raise StoreUnavailable("the namespace's document could not be changed; it is worth trying again")


def gate_of_epoch(beats: int, epoch: str) -> Gate:
    """Return what a commit tests that is right in any state of an epoch: a closed namespace can be marked as well."""
    return Gate(beats, tuple(f"{one} {epoch}" for one in Openness))
