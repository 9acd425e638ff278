"""Set a namespace right after a backup of its store was restored."""

from __future__ import annotations

from collections.abc import Sequence

from solocron.client.job_documents import JobDocuments
from solocron.clock import SECOND
from solocron.effects.locks.listing import raise_fences
from solocron.engine.namespace_gate import change_namespace
from solocron.errors import StoreError
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents import namespace
from solocron.model.documents.job import Job
from solocron.model.transitions import registration
from solocron.model.transitions.claimant import next_fence
from solocron.stores.contract import All, Result, Verdict
from solocron.stores.paging import PAGE, read_namespace
from solocron.stores.until_known import OPEN_OUTCOMES, update_until_known

__all__ = ["Restore"]


FENCES_AHEAD = 60_000
"""How far fences are raised above the clock: several grants within one millisecond take them ahead of it."""


STEP_BACK = 300 * SECOND
"""How far ahead of the store's clock the end of the nodes' work may lie, in microseconds. A clock that was fast by more
would keep every job from running for as long."""


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
        runtime, identity = self._documents.runtime, self._store.identity()
        fence = next_fence(0, self._store.clock()) + FENCES_AHEAD
        closing, opening = runtime.rng.token(), runtime.rng.token()
        stopped = self._stopped_at()
        change_namespace(
            self._store, lambda doc, now: namespace.close(doc, identity=identity, known=0, token=closing, now=now)
        )
        self._documents.all()  # fetches the calendars that their schedules need
        moved, unread = self._move_all(fence, stopped)
        raise_fences(self._store, runtime, fence)
        change_namespace(self._store, lambda doc, now: namespace.reopen(doc, identity=identity, token=opening, now=now))
        if unread:
            raise StoreError(
                f"{_jobs(unread)} cannot be read and kept the cursor of the backup, {unread[0]} among them; all others "
                "were moved to now, and nodes go on. See `solocron doctor`."
            )
        return moved

    def _stopped_at(self) -> int:
        """Return the store's time at which nodes ceased to claim; 0 if they have not."""
        known = read_namespace(self._store)
        return 0 if known is None or known.openness is namespace.Openness.OPEN else known.since

    def _move_all(self, fence: int, stopped: int) -> tuple[int, list[str]]:
        """Move every job to now; return how many, and the names of those that cannot be read.

        The jobs are selected by the update itself: a read leaves undecodable documents out, and the user would not
        hear that such a job runs from its old cursor on once a release that can decode it is there.
        """
        moved, unread, after = 0, list[str](), ""
        # Until a page is empty: a job that is deleted meanwhile makes a page shorter that is not the last one.
        while page := self._move(All(Kind.JOB, after=after, limit=PAGE), fence, stopped):
            blocked = [result.name for result in page if result.verdict is Verdict.BLOCKED]
            moved += len(page) - len(blocked)
            unread += blocked
            after = max(result.name for result in page)
        return moved, unread

    def _move(self, which: All, fence: int, stopped: int) -> Sequence[Result]:
        """Move the selected jobs to now; return the result of each."""
        resolve = self._documents.resolve

        def move(doc: Job | Absent, now: int) -> Change | None:
            until = min(stopped, now + STEP_BACK)
            return registration.move_to_now(doc, fence=fence, now=now, resolve=resolve, stopped=until)

        results = update_until_known(self._store, which, move).results
        left = [result.name for result in results if result.verdict in OPEN_OUTCOMES]
        if left:
            raise StoreError(
                f"{_jobs(left)} could not be moved to now, {left[0]} among them; others were. "
                "Stop the nodes, see `solocron doctor`, and repeat it."
            )
        return results


def _jobs(names: Sequence[str]) -> str:
    return "1 job" if len(names) == 1 else f"{len(names)} jobs"
