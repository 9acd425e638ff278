"""Why a slot did or did not run: a verdict in one sentence, and the facts in the order in which one looks for them.

A slot that succeeded is found by the name of its run, at the cost of its attempts. Any other may have been repeated
since, or lie in a summary of slots that did not run: then the job's records since the slot are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from solocron.client.instants import check_instant
from solocron.client.job_documents import JobDocuments, is_orphaned
from solocron.client.slots import Slots
from solocron.clock import SECOND, from_us, iso, to_us
from solocron.errors import InvalidError
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import GOOD, Origin, Record, Status, run_id
from solocron.model.documents.scoped_pause import standing
from solocron.model.documents.session import Session
from solocron.model.timetable import Timetable
from solocron.stores.contract import Query
from solocron.stores.paging import sessions_since
from solocron.views import FactView, SlotView, WhyView

__all__ = ["Why"]

_OPEN = ("due", "waiting")


class Why:
    """Explains slots."""

    def __init__(self, documents: JobDocuments, slots: Slots) -> None:
        self._documents = documents
        self._slots = slots
        self._store = documents.store

    def why(self, job: str, at: datetime | None = None) -> WhyView:
        """Explain the slot at an instant (None: now), or the last one before it."""
        at = from_us(self._store.clock()) if at is None else at
        check_instant("at", at, undone="nothing was read")
        doc = self._documents.get(job)
        timetable = self._documents.resolve(doc.definition.schedule)
        if not timetable.known:
            raise InvalidError(
                f"{job} has a schedule of its own class, which only its code knows; ask a program that has it."
            )
        slot = timetable.before(to_us(at) + 1)
        if slot is None:
            return self._without_slot(doc, timetable, at)
        return self._of(doc, timetable, at, slot)

    def _without_slot(self, job: Job, timetable: Timetable, at: datetime) -> WhyView:
        following = timetable.after(to_us(at))
        ahead = "never has one" if following is None else f"has its first at {iso(following)}"
        verdict = f"{job.name} has no slot at {iso(to_us(at))} or before; its schedule {ahead}."
        if job.definition.schedule is None:
            verdict = f"{job.name} has no schedule: it runs when it is triggered."
        return WhyView(job=job.name, asked=at, slot=None, status="no slot", verdict=verdict, facts=())

    def _of(self, job: Job, timetable: Timetable, at: datetime, slot: int) -> WhyView:
        records = self._named(job, slot)
        if not records or records[-1].status not in GOOD:  # it may have been repeated since, or did not run
            records = self._slots.records_of(job, slot)
        view = self._slots.fate(job, slot, records)
        sessions = sessions_since(self._store, slot)
        facts = [*_of_schedule(timetable, to_us(at), slot), *_of_definition(job, slot)]
        facts += _of_attempts(records, sessions)
        facts += _of_what_is_open(job, slot)
        verdict = _verdict(job, view, sessions)
        if view.status in _OPEN:
            hindrances = list(self._hindrances(job, sessions))
            facts += hindrances
            if hindrances:
                verdict = f"{verdict.removesuffix('.')}: {hindrances[0].what}."
        return WhyView(job=job.name, asked=at, slot=view.slot, status=view.status, verdict=verdict, facts=tuple(facts))

    def _named(self, job: Job, slot: int) -> list[Record]:
        """Return the attempts of the slot's own run, or of its shards, oldest first."""
        run = run_id(job.name, job.incarnation, Origin.SCHEDULE, slot)
        found = self._store.history(Query(run=run, limit=200)).records
        if not found and job.definition.shards is not None:
            found = self._store.history(Query(group=run, limit=200)).records
        return sorted(found, key=lambda one: (one.recorded_at, one.run, one.attempt))

    def _hindrances(self, job: Job, sessions: list[Session]) -> Iterator[FactView]:
        """Yield what keeps a slot that is due from starting."""
        now = self._store.clock()
        if not job.definition.enabled:
            yield FactView(at=None, what="the job is disabled: nothing of it starts by schedule")
        if job.paused is not None:
            pause = job.paused
            until = "until it is resumed" if pause.until is None else f"until {iso(pause.until)}"
            note = f": {pause.note}" if pause.note else ""
            yield FactView(at=from_us(pause.at), what=f"paused by {pause.by or 'unknown'} {until}{note}")
        for one in standing(self._documents.pauses(), now):
            if one.scope.covers(job):
                yield FactView(at=from_us(one.at), what=f"a pause of {one.scope} covers it, by {one.by or 'unknown'}")
        for aside in self._store.blocked():
            if (aside.kind, aside.name) == (Kind.JOB, job.name):
                what = f"its document is set aside until {iso(aside.until)}: {aside.reason}"
                yield FactView(at=None, what=what)
        if is_orphaned(job, sessions, now):
            pool, handler = job.definition.pool, job.definition.handler
            yield FactView(at=None, what=f"no live node of pool {pool!r} has its handler {handler}")
        if job.definition.limit is not None and not job.active:
            yield FactView(at=None, what=f"it needs a permit of the limit {job.definition.limit}")


def _of_schedule(timetable: Timetable, asked: int, slot: int) -> Iterator[FactView]:
    if slot == asked:
        yield FactView(at=from_us(slot), what="the schedule has this slot")
        return
    following = timetable.after(asked)
    ahead = "none after it" if following is None else f"the next is {iso(following)}"
    yield FactView(at=from_us(slot), what=f"the schedule has no slot at {iso(asked)}; this is the last before, {ahead}")
    left_out = timetable.left_out(slot, asked)
    if left_out is not None:
        count, _, last, why = left_out
        yield FactView(at=from_us(last), what=f"{count} in between left out by {why}")


def _of_definition(job: Job, slot: int) -> Iterator[FactView]:
    if job.incarnation >= slot:
        yield FactView(at=from_us(job.incarnation), what="the job was first registered, after the slot")
    elif job.defined_at is not None and job.defined_at >= slot:
        yield FactView(at=from_us(job.defined_at), what="the present definition was written, after the slot")
    if job.removed:
        yield FactView(at=None, what="the job is removed; its document is kept for a while")


def _of_attempts(records: Sequence[Record], sessions: list[Session]) -> Iterator[FactView]:
    known = {one.name: one for one in sessions}
    for record in records:
        if record.attempt == 0:
            continue
        who = f"attempt {record.attempt} of {record.run}"
        if record.claimed_at is not None:
            late = (record.claimed_at - record.slot) / SECOND
            claimed = f"{who} claimed by {record.node}, fence {record.fence}, {late:g} s after its slot"
            yield FactView(at=from_us(record.claimed_at), what=claimed)
        session = known.get(record.session or "")
        if record.status is Status.LOST and session is not None and session.ended_at is not None:
            by = f" by {session.buried_by}" if session.buried_by else ""
            yield FactView(at=from_us(session.ended_at), what=f"the session of {record.node} was ended{by}")
        reason = f": {record.reason}" if record.reason else ""
        yield FactView(at=from_us(record.recorded_at), what=f"{who} {record.status}{reason}")
    runs = {record.run for record in records}
    for session in sessions:
        for end in session.report.refused:
            if end.run in runs:
                what = f"{session.node} came too late with fence {end.fence}: its end ({end.outcome}) was refused"
                yield FactView(at=from_us(end.at), what=what)


def _of_what_is_open(job: Job, slot: int) -> Iterator[FactView]:
    for hold in job.active:
        if hold.slot == slot and hold.origin is not Origin.TRIGGER:
            held = f"attempt {hold.attempt} of {hold.run} runs on {hold.node}, fence {hold.fence}"
            yield FactView(at=from_us(hold.claimed_at), what=held)
        elif hold.slot < slot:
            yield FactView(at=from_us(hold.claimed_at), what=f"{hold.run} of an earlier slot still runs on {hold.node}")
    for wait in job.waiting_runs:
        if wait.slot == slot and wait.origin is not Origin.TRIGGER:
            what = f"attempt {wait.attempt} of {wait.run} may start from {iso(wait.ready_at)} on"
            yield FactView(at=from_us(wait.ready_at), what=what)


def _verdict(job: Job, view: SlotView, sessions: list[Session]) -> str:
    """Return the answer in one sentence."""
    name, slot, reason = job.name, iso(to_us(view.slot)), f": {view.reason}" if view.reason else ""
    match view.status:
        case "succeeded":
            return f"{name} ran its slot {slot} in {view.attempts} attempt{'s' * (view.attempts != 1)}, on {view.node}."
        case "handed_over":
            return f"{name} handed its slot {slot} over{reason}; what became of it there is not known here."
        case "offered":
            return f"{name} has not begun its slot {slot} yet{reason}."
        case "running":
            return f"{name} runs its slot {slot} now, on {view.node}."
        case "waiting":
            return f"{name} has not run its slot {slot} yet; it waits."
        case "due":
            return f"No node has decided the slot {slot} of {name} yet."
        case "to come":
            return f"The slot {slot} of {name} is to come."
        case "not defined":
            return f"{name} was not there with its present schedule at {slot}, so the slot is none of its own."
        case "unaccounted":
            keep = max((one.keep or 0 for one in sessions), default=0)
            days = f"{keep / SECOND / 86_400:g} days" if keep else "a time that no node tells"
            return (
                f"The slot {slot} of {name} is decided, and nothing is on record: its record was pruned (nodes keep "
                f"records for {days}), or it is lost, which is a bug."
            )
        case _ if view.run is None:
            return f"{name} did not run its slot {slot}; it was {view.status}{reason}."
    return f"{name} ran its slot {slot}, and it {view.status.replace('_', ' ')}{reason}."
