"""Compare the slots of a schedule with the job's document and the log: what became of each, and their sum.

The document is read before the log, because a run that ends in between would be in neither. What is in both is taken
from the log, unless the document has a later attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from solocron.client.instants import check_instant
from solocron.client.job_documents import JobDocuments
from solocron.client.recorded_slots import records_since
from solocron.clock import SECOND, from_us, to_us
from solocron.errors import InvalidError
from solocron.model.documents.job import Hold, Job, WaitingRun
from solocron.model.documents.run import Origin, Record, Status
from solocron.model.timetable import Timetable
from solocron.schedules import load_zone
from solocron.stores.paging import read_jobs
from solocron.views import AccountingView, SlotView
from solocron.views.runs import where_offered

__all__ = ["SLOTS", "JobAccount", "Slots"]

SLOTS = 2_000
"""Slots of one answer."""
_COMPARED = 5_000
"""Slots of one job in one accounting."""
_MISSING = 100
_WORST_FIRST = (
    *(Status.FAILED, Status.TIMED_OUT, Status.LOST, Status.CANCELLED, Status.DROPPED, Status.MISSED, Status.SKIPPED),
    *(Status.HANDED_OVER, Status.SUCCEEDED),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAccount:
    """The slots of one job that came due in a span, by what became of them."""

    counts: Mapping[str, int]
    unaccounted: tuple[datetime, ...] = ()
    """Slots that are decided and not on record."""
    left_out: str | None = None
    """Why they could not be compared."""
    removed: bool = False
    """True if the job is removed: nothing of it comes due any more."""


class Slots:
    """The slots of jobs and their fates."""

    def __init__(self, documents: JobDocuments) -> None:
        self._documents = documents
        self._store = documents.store

    def slots(self, job: str, start: datetime, end: datetime) -> list[SlotView]:
        """Return every slot from `start` on and before `end`, at most 2,000, with what became of it."""
        for name, moment in (("start", start), ("end", end)):
            check_instant(name, moment, undone="nothing was read")
        doc = self._documents.get(job)
        return self.of(doc, to_us(start), to_us(end), most=SLOTS)

    def of(self, job: Job, start: int, end: int, *, most: int, now: int | None = None) -> list[SlotView]:
        """Return the slots of a job that was just read; `now` is the store's time, if the caller has read it since."""
        timetable = self._documents.resolve(job.definition.schedule)
        if not timetable.known:
            raise InvalidError(
                f"{job.name} has a schedule of its own class, which only its code knows; ask a program that has it."
            )
        count = timetable.count(start - 1, end - 1)
        if count > most:
            raise InvalidError(f"{job.name} has {count} slots there, more than {most}; nothing was read. Narrow it.")
        if not count:
            return []
        fates = _Fates(job, timetable, self._store.clock() if now is None else now)
        for record in records_since(self._store, job.name, start):
            fates.add(record)
        found, slot = list[SlotView](), timetable.after(start - 1)
        while slot is not None and slot < end:
            found.append(fates.view(slot))
            slot = timetable.after(slot)
        return found

    def fate(self, job: Job, slot: int, records: Iterable[Record]) -> SlotView:
        """Return what became of one slot, from the job as it was read before the records."""
        fates = _Fates(job, self._documents.resolve(job.definition.schedule), self._store.clock())
        for record in records:
            fates.add(record)
        return fates.view(slot)

    def records_of(self, job: Job, slot: int) -> list[Record]:
        """Return the records of one slot, oldest first: its runs, reruns, and the summary in which it lies.

        Reads every record of the job since the slot.
        """
        found = [one for one in records_since(self._store, job.name, slot) if _is_of(one, slot)]
        return sorted(found, key=lambda one: (one.recorded_at, one.run, one.attempt))

    def accounting(self, since: datetime, job: str | None = None) -> AccountingView:
        """Return the slots that came due since then, by what became of them, of one job or of all.

        Reads the log of each job. A schedule with too many slots, or one that only code knows, is left out and named.
        """
        check_instant("since", since, undone="nothing was read")
        now, counts, missing = self._store.clock(), Counter[str](), list[tuple[str, datetime]]()
        jobs = [one for one in self._documents.all() if not one.removed] if job is None else [self._documents.get(job)]
        left_out: dict[str, str] = {}
        for one in jobs:
            account = self._account(one, to_us(since), now)
            if account.left_out is not None:
                left_out[one.name] = account.left_out
            counts.update(account.counts)
            missing += ((one.name, slot) for slot in account.unaccounted)
        return AccountingView(
            since=since,
            until=from_us(now),
            due=counts.total(),
            counts=dict(counts),
            unaccounted=tuple(missing[:_MISSING]),
            jobs=len(jobs) - len(left_out),
            left_out=left_out,
        )

    def accounts(self, names: Sequence[str], since: datetime, *, now: int | None = None) -> dict[str, JobAccount]:
        """Return the accounting of some jobs since then, each by itself; a name without a job is left out.

        `now` is the store's time, if the caller knows it.
        """
        jobs = read_jobs(self._store, names)
        now = self._store.clock() if now is None else now
        self._documents.calendars.learn(jobs)
        return {job.name: self._account(job, to_us(since), now) for job in jobs}

    def _account(self, job: Job, since: int, now: int) -> JobAccount:
        if job.definition.schedule is None or job.removed:
            return JobAccount(counts={}, removed=job.removed)
        try:
            views = self.of(job, _first_of(job, since), now + 1, most=_COMPARED, now=now)
        except InvalidError as error:
            return JobAccount(counts={}, left_out=str(error))
        return JobAccount(
            counts=Counter(view.status for view in views),
            unaccounted=tuple(view.slot for view in views if view.status == "unaccounted"),
        )


def _first_of(job: Job, since: int) -> int:
    """Return the instant from which on the present definition decides the job's slots."""
    return max(since, job.incarnation + 1, 0 if job.defined_at is None else job.defined_at + 1)


class _Fates:
    """What a document and records say of the slots of one job."""

    def __init__(self, job: Job, timetable: Timetable, now: int) -> None:
        self._job = job
        self._decided = timetable.decided_until(job.cursor, job.nominal)
        self._now = now
        self._zone: tzinfo = load_zone(str((job.definition.schedule or {}).get("tz", "UTC"))).info
        self._runs: dict[int, dict[str, Record]] = {}
        self._attempts: Counter[int] = Counter()
        self._spans: list[Record] = []
        self._held = _by_slot(job.active)
        self._waits = _by_slot(job.waiting_runs)

    def add(self, record: Record) -> None:
        """Take in a record. The last attempt of each run counts, and a rerun more than what it repeats."""
        if record.origin is Origin.TRIGGER:
            return
        if record.attempt == 0 and record.count > 1:
            self._spans.append(record)
            return
        self._attempts[record.slot] += record.attempt > 0
        runs = self._runs.setdefault(record.slot, {})
        known = runs.get(record.run)
        if known is None or record.attempt > known.attempt:
            runs[record.run] = record

    def view(self, slot: int) -> SlotView:
        """Return what became of a slot."""
        at, record = from_us(slot).astimezone(self._zone), self._record_of(slot)
        hold = self._held.get(slot)
        if isinstance(hold, Hold) and not (record and record.run == hold.run and record.attempt >= hold.attempt):
            return SlotView(
                slot=at, status=str(Status.OFFERED if hold.handing else Status.RUNNING), run=hold.run,
                attempts=self._attempts[slot] + 1, node=hold.node, origin=str(hold.origin),
                late_s=(hold.claimed_at - slot) / SECOND,
            )  # fmt: skip
        wait = self._waits.get(slot)
        if wait is not None:
            where = where_offered(wait) if isinstance(wait, WaitingRun) else None
            return SlotView(
                slot=at, status="waiting" if where is None else str(Status.OFFERED), reason=where, run=wait.run,
                attempts=self._attempts[slot], origin=str(wait.origin),
            )  # fmt: skip
        if record is not None:
            return self._recorded(slot, at, record)
        return SlotView(slot=at, status=self._without_record(slot))

    def _recorded(self, slot: int, at: datetime, record: Record) -> SlotView:
        begun = record.started_at if record.started_at is not None else record.claimed_at
        took = None if begun is None or record.finished_at is None else (record.finished_at - begun) / SECOND
        return SlotView(
            slot=at,
            status=str(record.status),
            reason=record.reason,
            run=record.run if record.attempt else None,
            attempts=self._attempts[slot],
            node=record.node,
            origin=str(record.origin),
            late_s=None if begun is None else (begun - slot) / SECOND,
            took_s=took,
        )

    def _record_of(self, slot: int) -> Record | None:
        """Return the record that decides a slot: of the latest run; of several shards, the worst."""
        runs = list(self._runs.get(slot, {}).values())
        if runs:
            newest = max(runs, key=lambda one: (one.origin is not Origin.SCHEDULE, one.recorded_at)).origin
            return min((one for one in runs if one.origin is newest), key=_badness)
        return next((one for one in self._spans if _is_of(one, slot)), None)

    def _without_record(self, slot: int) -> str:
        if any(one.first <= slot <= one.last for one in self._job.waiting_ranges):
            return "waiting"
        if slot > self._decided:
            return "to come" if slot > self._now else "due"
        return "not defined" if slot < _first_of(self._job, slot) else "unaccounted"


def _by_slot(begun: Iterable[Hold | WaitingRun]) -> dict[int, Hold | WaitingRun]:
    return {one.slot: one for one in begun if one.origin is not Origin.TRIGGER}


def _badness(record: Record) -> int:
    return _WORST_FIRST.index(record.status) if record.status in _WORST_FIRST else 0


def _is_of(record: Record, slot: int) -> bool:
    first = record.slot if record.first is None else record.first
    return record.origin is not Origin.TRIGGER and first <= slot <= record.slot
