"""Removes old history, and puts jobs under the latest revision of their calendar, at intervals."""

from __future__ import annotations

from solocron.engine.namespace_gate import NamespaceGate, change_namespace
from solocron.engine.node_context import NodeContext
from solocron.engine.small_documents import SmallDocuments
from solocron.lease.own import OwnLease
from solocron.model.documents import namespace

__all__ = ["Housekeeping"]

PRUNE_BATCH = 500
PRUNE_BATCHES = 10
"""Batches in one step; if more is old, the next step follows at once, after a look at the sessions."""
PRUNE_PAUSE = 0.05
"""Seconds in between, in which the store has time for other work."""
ANNOUNCED = 16
"""Parts of `keep`: pruning is announced at least one part ahead, and two parts at a time. So a node writes it sixteen
times in the span of its history, and a store's clock that steps back by less than a part misleads no process."""


class Housekeeping:
    """The sweeper's work besides sweeping."""

    def __init__(
        self, context: NodeContext, lease: OwnLease, gate: NamespaceGate, small_documents: SmallDocuments
    ) -> None:
        self._context = context
        self._lease = lease
        self._gate = gate
        self._small_documents = small_documents
        self._announced = ("", 0)
        """The epoch in which pruning was announced last, and up to which store time."""
        self._next = 0.0
        self._pruning = False

    def is_due(self, now: float) -> bool:
        return now >= self._next

    def begin(self, now: float) -> None:
        """Begin a round; an error in it is not repeated before the next one."""
        self._next = now + max(4 * self._context.settings.lease, 60.0)
        self._pruning = True
        if self._context.calendars.follow(self._context.settings.late_for):
            self._context.signals.claim.place_free()

    def step(self) -> float:
        """Continue a round; return when to be called again."""
        if self._pruning:
            self._pruning = False
            self._pruning = self._prune()
        return self._context.runtime.clock.boot() + PRUNE_PAUSE if self._pruning else self._next

    def _prune(self) -> bool:
        """Remove old history in small batches, True if there is more. Control logic never reads any of it."""
        now, settings, store = self._lease.store_now(), self._context.settings, self._context.store
        if now is None or not self._announce(now - settings.keep):
            return False
        total, more = 0, True
        while more and total < PRUNE_BATCHES * PRUNE_BATCH:
            removed = store.prune(now - settings.keep, PRUNE_BATCH)
            total += removed
            more = removed >= PRUNE_BATCH
        if not more:
            total += self._small_documents.prune(now=now, keep=settings.keep)
        if total:
            self._context.events.emit("pruned", records=total)
        return more

    def _announce(self, before: int) -> bool:
        """Write into the namespace which sessions may be missing from now on; False if it is being checked."""
        part, epoch = self._context.settings.keep // ANNOUNCED, self._gate.epoch
        if self._announced[0] == epoch and self._announced[1] >= before + part:
            return True
        until = before + 2 * part
        known = change_namespace(
            self._context.store, lambda doc, at: namespace.note_pruning(doc, epoch=epoch, until=until)
        )
        if known is None:
            return False  # another epoch: the keeper finds out
        self._announced = (epoch, known.pruned)
        return True
