"""Set a namespace right after a backup of its store was restored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from solocron.client.job_documents import JobDocuments
from solocron.clock import SECOND
from solocron.effects.locks.listing import are_raised, raise_fences
from solocron.engine.namespace_gate import change_namespace
from solocron.engine.transactional_triggers import is_known
from solocron.errors import StoreError
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents import namespace, request
from solocron.model.documents.job import Job
from solocron.model.transitions import registration
from solocron.model.transitions.claimant import next_fence
from solocron.stores.contract import All, ChangeFn, Named, Result, Verdict
from solocron.stores.paging import PAGE, iter_jobs, iter_names, read_namespace
from solocron.stores.until_known import OPEN_OUTCOMES, update_until_known

__all__ = ["Restore"]


FENCES_AHEAD = 60_000
"""How far fences are raised above the clock: several grants within one millisecond take them ahead of it."""


TRIES = 5
"""How often everything is moved to now at most. Each time the store must have gone back meanwhile."""


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
        next beat. If the store goes back meanwhile, it is done anew: only what was moved is opened.
        """
        fence = stopped = 0
        for _ in range(TRIES):
            # A higher fence each time: what an earlier try has moved must not count as moved by this one.
            fence = max(fence + 1, next_fence(0, self._store.clock()) + FENCES_AHEAD)
            stopped = max(stopped, self._stopped_at())
            done = self._try(fence, stopped)
            if done is None:
                continue
            moved, unread = done
            if unread:
                raise StoreError(
                    f"{_jobs(unread)} cannot be read and kept the cursor of the backup, {unread[0]} among them; all "
                    "others were moved to now, and nodes go on. See `solocron doctor`."
                )
            return len(moved)
        raise StoreError(
            f"the store went back, or another `solocron restored` was at work, while jobs were moved to now, {TRIES} "
            "times; the namespace was not opened by this one. Repeat it once no one else restores."
        )

    def _try(self, fence: int, stopped: int) -> tuple[set[str], list[str]] | None:
        """Move everything to now and open the namespace; None if what was moved is not what would be opened.

        The token that the closing leaves is lost if the store goes back to before it; then the next write of the
        namespace is declined. The store may also go back to a moment after the closing, so one token does not suffice:
        a second one is written when everything is moved, and the documents are read after that. If a move was lost
        before the second token, the reads show it. If it is lost later, the second token is lost with it.
        """
        runtime, identity = self._documents.runtime, self._store.identity()
        closing, moving, opening = runtime.rng.token(), runtime.rng.token(), runtime.rng.token()
        self._change(partial(namespace.begin_restoring, identity=identity, token=closing))
        self._documents.all()  # fetches the calendars that their schedules need
        requests = self._take_in_requests()
        moved, unread = self._move_all(fence, stopped)
        locks = raise_fences(self._store, runtime, fence)
        if not self._change(partial(namespace.begin_restoring, identity=identity, token=moving, after=closing)):
            return None
        if not self._is_moved(moved, fence) or not are_raised(self._store, locks, fence):
            return None
        if not requests.isdisjoint(iter_names(self._store, Kind.REQUEST)):
            return None
        if not self._change(partial(namespace.reopen, identity=identity, restoring=moving, token=opening)):
            return None
        return moved, unread

    def _change(self, change: Callable[..., Change | None]) -> bool:
        """Change the namespace; return whether the change was not declined."""
        return change_namespace(self._store, lambda doc, now: change(doc, now=now)) is not None

    def _is_moved(self, names: set[str], fence: int) -> bool:
        """Return whether each of these jobs that is there has this fence or a higher one."""
        return all(job.fence >= fence or job.removed for job in iter_jobs(self._store) if job.name in names)

    def _take_in_requests(self) -> set[str]:
        """Turn what committed transactions requested into runs, which are then moved like all others; return the names.

        No node does so while the namespace is closed. The backup has requests that became runs after it was made, and
        nothing in it says so.
        """
        taken, after = set[str](), ""
        while page := self._store.read(All(Kind.REQUEST, after=after, limit=PAGE)):
            after = page[-1].name
            notes = [note for note in page if isinstance(note, SmallDocument)]
            fresh = request.by_job(note for note in notes if not is_known(self._store, note))
            # A job that cannot be read keeps its requests, as it keeps its cursor: the error names it.
            kept = {result.name for result in self._accept(fresh) if result.verdict is Verdict.BLOCKED}
            names = [note.name for note in notes if request.job_named(note) not in kept]
            self._sure(Named(Kind.REQUEST, tuple(names)), lambda doc, _: _removed(doc))
            taken.update(names)
        return taken

    def _accept(self, of_job: Mapping[str, Sequence[SmallDocument]]) -> Sequence[Result]:
        def accept(doc: Job | Absent, now: int) -> Change | None:
            return request.accept(doc, left=of_job[doc.name], now=now, resolve=self._documents.resolve)

        return self._sure(Named(Kind.JOB, tuple(sorted(of_job))), accept)

    def _sure(self, which: Named, change: ChangeFn) -> Sequence[Result]:
        """Apply a change to each of these; return the results, each of which is known."""
        if not which.names:
            return ()
        results = update_until_known(self._store, which, change).results
        if any(result.verdict in OPEN_OUTCOMES for result in results):
            raise StoreError(
                "what transactions had requested could not be decided, and the namespace was not opened. "
                "Stop the nodes, see `solocron doctor`, and repeat it."
            )
        return results

    def _stopped_at(self) -> int:
        """Return the store's time at which nodes ceased to claim; 0 if they have not."""
        known = read_namespace(self._store)
        return 0 if known is None or known.openness is namespace.Openness.OPEN else known.since

    def _move_all(self, fence: int, stopped: int) -> tuple[set[str], list[str]]:
        """Move every job to now; return the names of those that can be read, and of those that cannot.

        The jobs are selected by the update itself: a read leaves undecodable documents out, and the user would not
        hear that such a job runs from its old cursor on once a release that can decode it is there.
        """
        moved, unread, after = set[str](), list[str](), ""
        # Until a page is empty: a job that is deleted meanwhile makes a page shorter that is not the last one.
        while page := self._move(All(Kind.JOB, after=after, limit=PAGE), fence, stopped):
            blocked = [result.name for result in page if result.verdict is Verdict.BLOCKED]
            moved.update(result.name for result in page if result.verdict is not Verdict.BLOCKED)
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


def _removed(doc: SmallDocument | Absent) -> Change | None:
    return None if isinstance(doc, Absent) else Change(None)


def _jobs(names: Sequence[str]) -> str:
    return "1 job" if len(names) == 1 else f"{len(names)} jobs"
