"""The signs that the store went back: what it acknowledged to this process is not there any more.

The rules, and what each of them prevents, are in docs/explanation/going-back.md.
"""

from __future__ import annotations

import math

from solocron.clock import SECOND
from solocron.engine.node_context import NodeContext
from solocron.lease.holder import Holder
from solocron.lease.renewals import AcknowledgedRenewals
from solocron.model.change import Kind
from solocron.model.documents.namespace import Namespace, Openness
from solocron.model.documents.session import Session
from solocron.stores.contract import Named
from solocron.stores.paging import read_namespace

__all__ = ["Signs"]

EPOCHS = 64
"""Number of epochs whose first observation a node remembers."""


class Signs:
    """The signs that this process has met, and how much was lost at least."""

    def __init__(self, context: NodeContext, holder: Holder) -> None:
        self._context = context
        self._holder = holder
        self.lost: float | None = None
        """Seconds that were lost at least; None while there is no sign."""
        self._epochs: dict[int, float] = {}
        """Boot times at which this node first saw each epoch, by its count."""
        self._closed: set[int] = set()
        """Counts of the epochs in which this node saw the namespace closed."""
        self.observed_at = 0.0
        """Boot time at which the store last reported anything about the namespace."""

    def session_went_back(self, doc: object, session: str) -> bool:
        """Return whether the document of a session of ours is older than what the store has acknowledged."""
        renewals = self._holder.former.get(session)
        if renewals is None:
            return False
        if not isinstance(doc, Session):
            if self._may_be_pruned(renewals):
                del self._holder.former[session]
                return False
            lost = renewals.lost(None)
        elif doc.beats < renewals.beats:
            lost = renewals.lost(doc.beats)
        else:
            return False
        self.lost = max(lost, self.lost or 0.0)
        return True

    def _may_be_pruned(self, renewals: AcknowledgedRenewals) -> bool:
        """Return whether a node may have removed a session because it was swept and old.

        The namespace is read after the session was missing: its mark is written before the first session is removed.
        The mark of another node counts, whose `keep` may be shorter than this node's.
        """
        age = self._context.runtime.clock.boot() - renewals.renewed
        if age > self._context.settings.keep / SECOND / 2:
            return True
        known = read_namespace(self._context.store)
        return known is not None and renewals.at < known.pruned

    def former_sessions_went_back(self) -> bool:
        """Return whether documents of earlier sessions are older than this process left them.

        Called before a new session begins.
        """
        names = tuple(name for name in self._holder.former if name != self._holder.lease.session)
        if not names:
            return False
        found = {doc.name: doc for doc in self._context.store.read(Named(Kind.SESSION, names))}
        back = [name for name in names if self.session_went_back(found.get(name), name)]
        return bool(back)

    def epoch_went_back(self, left: int, known: int) -> None:
        """Compare the count of the epoch in the store with the one that this node knows.

        Of sessions that were lost one after the other none is old: there the epochs show how far the store went back.
        If the namespace was closed in a lost epoch, more is lost than nodes remember, however recent that epoch is.
        """
        if left < known:
            since = min(at for epoch, at in self._epochs.items() if epoch > left)
            lost = math.inf if any(epoch > left for epoch in self._closed) else self.observed_at - since
            self.lost = max(lost, self.lost or 0.0)

    def epoch_seen(self, found: Namespace) -> None:
        self.observed_at = self._context.runtime.clock.boot()
        self._epochs.setdefault(found.count, self.observed_at)
        if found.openness is Openness.CLOSED:
            self._closed.add(found.count)
        while len(self._epochs) > EPOCHS:
            oldest = min(self._epochs)
            del self._epochs[oldest]
            self._closed.discard(oldest)

    def accounted(self) -> None:
        """A check has begun that takes the loss into account: former sessions show nothing new."""
        self.lost = None
        own = self._holder.lease.session
        for name in [name for name in self._holder.former if name != own]:
            del self._holder.former[name]
