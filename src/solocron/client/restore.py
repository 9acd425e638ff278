"""Set a namespace right after a backup of its store was restored."""

from __future__ import annotations

from solocron.client.job_documents import JobDocuments
from solocron.effects.locks.listing import raise_fences
from solocron.engine.recovery import change_namespace
from solocron.errors import StoreError
from solocron.model.change import Kind
from solocron.model.documents import namespace
from solocron.model.transitions import registration
from solocron.stores.contract import Named, Verdict
from solocron.stores.paging import PAGE

__all__ = ["Restore"]


class Restore:
    """`restored()`: what the backup does not know of is not run again."""

    def __init__(self, documents: JobDocuments) -> None:
        self._documents = documents
        self._store = documents.store

    def restored(self) -> int:
        """After a backup was restored: move every cursor to now and raise every fence; return how many jobs.

        Nothing is claimed meanwhile. At the end the namespace is open under a new epoch, which nodes see with their
        next beat.
        """
        fence = self._store.clock() // 1_000
        identity, tokens = (
            self._store.identity(),
            (self._documents.runtime.rng.token(), self._documents.runtime.rng.token()),
        )
        change_namespace(
            self._store, lambda doc, now: namespace.close(doc, identity=identity, known=0, token=tokens[0], now=now)
        )
        names = [job.name for job in self._documents.all()]
        aside: list[str] = []
        for start in range(0, len(names), PAGE):
            aside += self._restore(tuple(names[start : start + PAGE]), fence)
        raise_fences(self._store, self._documents.runtime, fence)
        change_namespace(
            self._store, lambda doc, now: namespace.reopen(doc, identity=identity, token=tokens[1], now=now)
        )
        if aside:
            raise StoreError(
                f"{len(aside)} jobs cannot be read and were left as they are, {aside[0]} among them; all others were "
                "moved to now, and nodes go on. See `solocron doctor`."
            )
        return len(names)

    def _restore(self, names: tuple[str, ...], fence: int) -> list[str]:
        """Move these jobs to now; return those that were set aside because they cannot be read."""
        left, aside = names, []
        for _ in range(8):
            applied = self._store.update(
                Named(Kind.JOB, left),
                lambda doc, now: registration.move_to_now(doc, fence=fence, now=now, resolve=self._documents.resolve),
            )
            aside += [result.name for result in applied.results if result.verdict is Verdict.BLOCKED]
            again = (Verdict.CONTENDED, Verdict.UNKNOWN)
            left = tuple(result.name for result in applied.results if result.verdict in again)
            if not left:
                return aside
        raise StoreError(
            f"{len(left)} jobs could not be moved to now, {left[0]} among them; the others were. "
            "Stop the nodes, see `solocron doctor`, and repeat it."
        )
