"""The wait of a new process beside others, which are the first to notice that the store went back."""

from __future__ import annotations

from solocron.engine.node_context import NodeContext
from solocron.model.documents.session import Life
from solocron.stores.paging import read_sessions

__all__ = ["Newcomer"]


class Newcomer:
    """Decides from when on a node may claim.

    It may once every node that seemed to live has renewed or ended, or after a barrier. A node that renews its session
    has seen whether the store went back, and would have shut the namespace.
    """

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._has_begun = False
        self.claims_from = 0.0
        """Boot time from which on this node may claim."""
        self._awaited: dict[str, int] = {}
        """Sessions that must be renewed or end before it may claim sooner, with their renewals when it began."""

    @property
    def waits(self) -> bool:
        return bool(self._awaited)

    def begun(self, session: str) -> None:
        """Start the wait with the first session of a process, if other nodes seem to live."""
        first, self._has_begun = not self._has_begun, True
        if not first:
            return
        barrier = self._context.settings.barrier
        # Before the read: if the store does not reply, others may live, and the node waits as beside them.
        self.claims_from = self._context.runtime.clock.boot() + barrier
        self._awaited = {name: beats for name, beats in self._nodes().items() if name != session}
        if not self._awaited:
            self.claims_from = 0.0
        else:
            self._context.events.emit("newcomer", node=self._context.settings.node, claims_in_s=barrier)

    def look_at_others(self) -> None:
        """End the wait if it is over."""
        if not self._awaited:
            return
        if self._context.runtime.clock.boot() < self.claims_from:
            found = self._nodes()
            self._awaited = {name: beats for name, beats in self._awaited.items() if found.get(name) == beats}
            if self._awaited:
                return
        self.claim_at_once()
        self._context.signals.claim.look_again()
        self._context.signals.sweep.wake()

    def claim_at_once(self) -> None:
        """Do not wait: the process makes one pass for an external trigger."""
        self._awaited, self.claims_from = {}, 0.0

    def _nodes(self) -> dict[str, int]:
        """Return the sessions of nodes that seem to live, with the renewals of each."""
        found = read_sessions(self._context.store)
        return {doc.name: doc.beats for doc in found if doc.pools and doc.state is Life.LIVE}
