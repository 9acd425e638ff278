"""Takes over what a session that is over still holds: runs, locks, keys, requests, permits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from solocron.engine.node_context import NodeContext
from solocron.engine.recorded import tell_recorded_twice
from solocron.engine.small_documents import SmallDocuments
from solocron.model.change import Absent, Change, Kind
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.session import Session, progress_of, swept
from solocron.model.transitions.finishing import PAUSED, take_over
from solocron.stores.contract import ChangeFn, Gate, HeldBy, Named, Result, Verdict
from solocron.stores.until_known import update_until_known

__all__ = ["Takeover"]


class Takeover:
    """Ends the holds of dead sessions, and marks a session swept once it holds nothing."""

    def __init__(self, context: NodeContext, boot_of: Callable[[int], float | None]) -> None:
        """Keep `boot_of`, which turns an instant of the store into boot time: the claimer learns when to look."""
        self._context = context
        self._boot_of = boot_of
        self.small_documents = SmallDocuments(context)

    def take_all(self, session: Session, *, by: str | None = None, gate: Gate | None = None) -> bool:
        """Take over everything that a dead session holds and mark it swept; False if something is left.

        It is swept only after a pass that skipped nothing.
        """
        reason = f"{session.node}: {session.reason or 'its lease ended'}"
        if not self.take_from(session.name, reason, progress=progress_of(session), by=by, gate=gate):
            return False
        self.mark_swept(session.name, by=by, gate=gate)
        return True

    def mark_swept(self, session: str, *, by: str | None = None, gate: Gate | None = None) -> None:
        self._context.store.update(
            Named(Kind.SESSION, (session,)), lambda doc, at: swept(doc, now=at), session=by, gate=gate
        )

    def take_from(
        self,
        session: str,
        reason: str,
        *,
        progress: Mapping[tuple[str, int], str] | None = None,
        by: str | None = None,
        gate: Gate | None = None,
    ) -> bool:
        """End the holds of a session, of jobs and of small documents; True if complete passes found nothing left.

        `by` is the session of the node that takes over. A node that leaves takes from itself, without one. `progress`
        is what the session reported of its runs; their records keep it.
        """
        resolve = self._context.resolve
        held: dict[str, tuple[Hold, ...]] = {}

        def change(doc: Job | Absent, at: int) -> Change | None:
            if isinstance(doc, Job):
                held[doc.name] = tuple(one for one in doc.active if one.session == session and not one.handing)
            return take_over(doc, session=session, now=at, reason=reason, resolve=resolve, progress=progress)

        report = partial(self._report, session=session, held=held)
        return self._take_jobs(session, change, report, by, gate) and self.small_documents.take_from(
            session, by=by, gate=gate
        )

    def _take_jobs(
        self, session: str, change: ChangeFn, report: Callable[[Result], None], by: str | None, gate: Gate | None
    ) -> bool:
        applied = update_until_known(
            self._context.store,
            HeldBy(session),
            change,
            session=by,
            gate=gate,
            each=report,
        )
        return _is_complete(applied.results) and applied.alive and not applied.shut

    def _report(self, result: Result, *, session: str, held: Mapping[str, tuple[Hold, ...]]) -> None:
        tell_recorded_twice(self._context.events, result)
        if result.verdict is not Verdict.APPLIED:
            return
        job = result.doc if isinstance(result.doc, Job) else None  # a removed one is gone with its last hold
        self._context.events.emit(
            "taken over", job=result.name, handler=None if job is None else job.definition.handler, session=session,
            by=self._context.settings.node,
            due_at=None if job is None else job.due_at,
            runs=tuple(
                {
                    "run": hold.run, "attempt": hold.attempt, "origin": str(hold.origin), "node": hold.node,
                    "final": job is None or not job.continues(hold.run),
                }
                for hold in held[result.name]
            ),
        )  # fmt: skip
        if job is None:
            return
        if result.answer == PAUSED and job.paused is not None:
            self._context.events.emit("paused", job=job.name, reason=job.paused.note)
        if job.due_at is None:
            self._context.signals.claim.place_free()
        else:
            self._context.signals.claim.due(self._boot_of(job.due_at))


def _is_complete(results: tuple[Result, ...]) -> bool:
    return all(result.verdict is Verdict.APPLIED for result in results)
