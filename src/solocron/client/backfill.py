"""Run the past again: rerun one slot or every failed one, backfill a range."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Literal, get_args, overload

from solocron.author import check_author
from solocron.client.census import Census
from solocron.client.commands import check_key
from solocron.client.job_documents import JobDocuments
from solocron.client.recorded_slots import (
    backfill_view,
    check_range,
    failed_slots,
    reading_of,
    spans_to_run,
    under_way,
)
from solocron.client.refusals import error_of
from solocron.clock import iso
from solocron.errors import InvalidError
from solocron.model.change import Absent, Change
from solocron.model.documents.job import Hold, Job, WaitingRange, WaitingRun
from solocron.model.documents.run import Origin, run_id
from solocron.model.refusals import Refusal
from solocron.model.transitions import backfill
from solocron.model.transitions.backfill import BackfillOver
from solocron.stores.log import is_recorded
from solocron.views import BackfillView

__all__ = ["BackfillChoice", "Backfills"]

BackfillChoice = Literal["all", "missed", "not_well"]
"""Which slots of a range a backfill runs: all, those that did not run, or those that did not succeed."""


class Backfills:
    """Runs slots of the past again, with the slot and the key that each one had."""

    def __init__(self, documents: JobDocuments, census: Census) -> None:
        self._documents = documents
        self._census = census
        self._store = documents.store

    @overload
    def rerun(
        self, job: str, slot: datetime, *, key: str | None = None, by: str | None = None, note: str | None = None
    ) -> str: ...
    @overload
    def rerun(
        self,
        job: str,
        *,
        failed_since: datetime,
        key: str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> list[str]: ...
    def rerun(
        self,
        job: str,
        slot: datetime | None = None,
        *,
        failed_since: datetime | None = None,
        key: str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> str | list[str]:
        """Run a slot once more, or every slot that failed since then; return the id of the run, or a list of ids.

        The run has the slot and the key of the first one: effects guarded by that key happen once. Calling it again
        with the same `key` returns the same rerun.
        """
        if (slot is None) == (failed_since is None):
            raise InvalidError("rerun: give a slot, or failed_since=; nothing was asked for.")
        check_key(key)
        check_author(by, note, undone="nothing was asked for")
        doc, request = self._documents.get(job), key if key is not None else self._documents.runtime.rng.token()
        if slot is not None:
            return self._rerun(doc, *reading_of(self._store, doc, slot), request, by, note)
        assert failed_since is not None
        failed = failed_slots(self._store, doc, failed_since)
        return [self._rerun(doc, at, reading, request, by, note) for at, reading in failed]

    def _rerun(self, doc: Job, slot: int, reading: str, request: str, by: str | None, note: str | None) -> str:
        run = backfill.rerun_id(doc, slot, request)
        # The document keeps the latest requests and what runs, the log what has ended; read in this order.
        if doc.knows(run) or is_recorded(self._store, run):
            return run
        trace = self._documents.trace()
        answer = self._documents.change_known(
            doc.name,
            lambda found, now: backfill.rerun(
                found,
                slot=slot,
                reading=reading,
                request=request,
                now=now,
                resolve=self._documents.resolve,
                by=by,
                note=note,
                trace=trace,
            ),
        )
        if isinstance(answer, Refusal):
            raise error_of(answer, doc.name, undone=f"{iso(slot)} was not asked for", slot=iso(slot))
        return str(answer)

    def backfill(
        self,
        job: str,
        start: datetime,
        end: datetime,
        *,
        limit: int | None = None,
        rate: str | None = None,
        dry_run: bool = False,
        only: BackfillChoice = "all",
        key: str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> BackfillView:
        """Run every slot from `start` to before `end`, live slots first; `dry_run` only counts.

        `only="missed"` leaves out the slots that ran, `only="not_well"` those that succeeded. The same `key` again is
        the same backfill, also after it has ended.
        """
        check_key(key)
        if only not in get_args(BackfillChoice):
            raise InvalidError(
                f"only={only!r:.40} is not known; choose from {', '.join(get_args(BackfillChoice))}. "
                "Nothing was asked for."
            )
        check_author(by, note, undone="nothing was asked for")
        begin, stop, pace = check_range(start, end, limit, rate, self._store.clock())
        request = key if key is not None else self._documents.runtime.rng.token()
        trace = self._documents.trace()

        def ask(doc: Job | Absent, now: int) -> Change | None:
            return backfill.backfill(
                doc, start=begin, end=stop, limit=limit, pace=pace, request=request, now=now,
                resolve=self._documents.resolve, by=by, note=note, trace=trace, spans=spans,
            )  # fmt: skip

        doc, spans = self._documents.get(job), None
        slots = self._documents.resolve(doc.definition.schedule)
        if only != "all" and slots.known:
            spans = spans_to_run(self._store, doc, slots, begin, stop, only=only, limit=limit)
        if key is not None and not dry_run and (over := self._over(doc, ask(doc, self._store.clock()))) is not None:
            return over
        if spans == []:
            return BackfillView(
                id=None, job=job, first=start, last=end, total=0, waiting=0, running=0, done=0, rate=None,
                asked_by=by, note=note,
            )  # fmt: skip
        if dry_run:
            change = ask(doc, self._store.clock())
            answer = None if change is None else change.answer
        else:
            answer = self._documents.change_known(job, ask)
            self._census.forget()
        if isinstance(answer, Refusal):
            raise error_of(answer, job, undone="nothing was asked for")
        if isinstance(answer, BackfillOver):  # begun and done since this call has read the job
            return backfill_view(doc, answer.waiting_range)
        assert isinstance(answer, WaitingRange)
        return backfill_view(doc, answer, dry_run=dry_run)

    def _over(self, doc: Job, change: Change | None) -> BackfillView | None:
        """Return the backfill that a change would begin, if its key has had it already and nothing of it waits.

        The document keeps the latest requests, the log what has ended; the document was read before.
        """
        answer = None if change is None else change.answer
        if isinstance(answer, BackfillOver):
            return backfill_view(doc, answer.waiting_range)
        if not isinstance(answer, WaitingRange) or any(
            one.origin is Origin.BACKFILL and one.request == answer.request for one in doc.waiting_ranges
        ):
            return None
        first = run_id(doc.name, doc.incarnation, Origin.BACKFILL, f"{answer.first}|{answer.request}")
        if not doc.knows(first) and not is_recorded(self._store, first):
            return None
        return backfill_view(doc, replace(answer, count=0))

    def backfills(self, job: str | None = None) -> list[BackfillView]:
        """Return the backfills that still have slots to start, of one job or of all."""
        if job is not None:
            return under_way(self._documents.get(job))
        return [view for doc in self._census.documents(lambda one: one.backfilled) for view in under_way(doc)]

    def backfill_running(self, view: BackfillView) -> int:
        """Return how many runs of a backfill have started and are not over."""
        doc = self._documents.get(view.job)
        begun: list[Hold | WaitingRun] = [*doc.active, *doc.waiting_runs]
        past = [one for one in begun if one.origin is Origin.BACKFILL]
        return sum(backfill.backfill_id(doc, one.request or "") == view.id for one in past)
