"""Releases small documents of dead sessions, and removes old ones.

A key or a step of a run that is still running or waiting is never removed, however old: a retry must find it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from solocron.engine.node_context import NodeContext
from solocron.model.change import Change, Kind, SmallDocument
from solocron.model.documents import audit, key, lock, permit, request, steps
from solocron.model.documents.run import job_of
from solocron.stores.contract import All, Gate, HeldBy, Named, Verdict
from solocron.stores.paging import read_jobs
from solocron.stores.until_known import update_until_known

__all__ = ["SmallDocuments"]

PAGE = 500
PAGES = 10
"""Pages that one round reads; the next round continues from there."""


class SmallDocuments:
    """The sweeper's part for locks, keys, steps and requests."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._at = {Kind.KEY: "", Kind.STEP: ""}

    def take_from(self, session: str, *, by: str | None = None, gate: Gate | None = None) -> bool:
        """Free the locks and permits of a dead session, make its open keys uncertain, release the requests it held.

        True if complete passes found nothing left.
        """
        kinds = (
            (Kind.LOCK, lock.orphan),
            (Kind.KEY, key.orphan),
            (Kind.REQUEST, request.orphan),
            (Kind.PERMIT, permit.orphan),
        )
        return all(self._give_up(session, kind, orphan, by, gate) for kind, orphan in kinds)

    def _give_up(
        self, session: str, kind: Kind, orphan: Callable[..., Change | None], by: str | None, gate: Gate | None
    ) -> bool:
        applied = update_until_known(
            self._context.store,
            HeldBy(session, kind),
            lambda doc, at: orphan(doc, session=session, now=at),
            session=by,
            gate=gate,
        )
        complete = all(result.verdict is Verdict.APPLIED for result in applied.results)
        return complete and applied.alive and not applied.shut

    def prune(self, *, now: int, keep: int) -> int:
        """Remove expired keys, steps untouched for longer than `keep`, old audit entries; return how many."""
        keys = self._prune(Kind.KEY, lambda doc: doc.expires_at is not None and doc.expires_at <= now, key.prune)
        old_steps = self._prune(
            Kind.STEP, lambda doc: doc.body["at"] < now - keep, partial(_prune_steps, before=now - keep)
        )
        return keys + old_steps + self._prune_audit(now - audit.KEEP)

    def _prune_audit(self, before: int) -> int:
        """Remove a page of entries from before then. They follow one name, so that no others are read."""
        old = self._context.store.read(All(Kind.AUDIT, after=audit.name_before(before), limit=PAGE))
        if not old:
            return 0
        names = tuple(doc.name for doc in old)
        applied = self._context.store.update(Named(Kind.AUDIT, names), lambda doc, at: audit.prune(doc, before=before))
        return sum(result.verdict is Verdict.APPLIED for result in applied.results)

    def _prune(self, kind: Kind, old: Callable[[SmallDocument], bool], remove: Callable[..., Change | None]) -> int:
        removed = 0
        for _ in range(PAGES):
            page = self._context.store.read(All(kind, after=self._at[kind], limit=PAGE))
            self._at[kind] = page[-1].name if len(page) == PAGE else ""
            gone = [doc for doc in page if isinstance(doc, SmallDocument) and old(doc)]
            if gone:
                unfinished = self._unfinished({_run_of(doc) for doc in gone} - {""})
                applied = self._context.store.update(
                    Named(kind, tuple(doc.name for doc in gone)),
                    lambda doc, at, unfinished=unfinished: remove(doc, now=at, unfinished=unfinished),  # type: ignore[misc]
                )
                removed += sum(result.verdict is Verdict.APPLIED for result in applied.results)
            if len(page) < PAGE:
                break
        return removed

    def _unfinished(self, runs: set[str]) -> dict[str, object]:
        """Return the runs that are running or waiting. Any other has ended, and never comes back."""
        names = sorted({job_of(run) for run in runs} - {""})
        found: dict[str, object] = {}
        for job in read_jobs(self._context.store, names) if names else ():
            found |= {hold.run: hold for hold in job.active}
            found |= {waiting_run.run: waiting_run for waiting_run in job.waiting_runs}
        return found


def _run_of(doc: SmallDocument) -> str:
    return doc.name if doc.kind is Kind.STEP else str(doc.body.get("run", ""))


def _prune_steps(doc: Any, *, now: int, unfinished: dict[str, object], before: int) -> Change | None:
    return steps.prune(doc, before=before, unfinished=unfinished)
