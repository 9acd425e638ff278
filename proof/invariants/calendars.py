"""Invariants of calendars: nodes with different caches agree, no slot comes on a day off, every change arrives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from proof.invariants.checker import Checker, Violation, new_holds
from proof.oracles.workdays import Workdays, is_left_out
from solocron.clock import iso
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.job import Hold, Job, WaitingRun
from solocron.model.documents.run import Origin, Status
from solocron.testing.simulation.database import Commit

__all__ = ["CALENDARS", "JOBS", "QUIESCENCE", "calendar_of"]


def calendar_of(job: object) -> str | None:
    """The calendar that a job names."""
    spec = job.definition.schedule if isinstance(job, Job) else None
    return None if spec is None else spec.get("calendar")


def i10_slots_are_those_of_the_revision(checker: Checker, commit: Commit) -> None:
    """A slot that begins to wait or is claimed belongs to the revision that the job, or what waited, had named."""
    before = commit.before
    if not isinstance(before, Job):
        return
    for one, spec in _begun(before, commit):
        slots = checker.slots_of(spec)
        if slots is None:
            continue
        if not slots.count(one.slot - 1, one.slot):
            raise Violation("I10", f"{one.run} is at {iso(one.slot)}, where revision {_revision(spec)} has no slot")
        if isinstance(slots, Workdays) and slots.is_moved(one.slot):
            checker.moved += isinstance(one, Hold)


def i10_days_off_are_on_record(checker: Checker, commit: Commit) -> None:
    """A slot that a calendar leaves out is on record as skipped, in the commit that passes it, with the days' name."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not isinstance(after, Job) or before.removed:
        return
    if after.cursor == before.cursor or after.incarnation != before.incarnation:
        return
    slots = checker.slots_of(before.definition.schedule)
    if not isinstance(slots, Workdays):
        return
    off = slots.left_out(before.cursor, after.cursor)
    told = [record for record in commit.records if is_left_out(record)]
    checker.left_out += len(off)
    if sum(record.count for record in told) != len(off) or any(r.status is not Status.SKIPPED for r in told):
        raise Violation("I10", f"{commit.name} passed {len(off)} slots on days off, on record are {told}")
    if off and (min(r.first or r.slot for r in told), max(r.slot for r in told)) != (off[0], off[-1]):
        raise Violation("I10", f"{commit.name}: days off from {iso(off[0])} to {iso(off[-1])}, on record are {told}")


def i11_a_job_never_goes_back_to_an_older_revision(checker: Checker, commit: Commit) -> None:
    """A definition that names the same calendar again names a revision that is not older."""
    before, after = commit.before, commit.after
    if not isinstance(before, Job) or not isinstance(after, Job) or before.definition is not after.definition:
        checker.written[f"{commit.name} defined"] = commit.at
    if calendar_of(before) != calendar_of(after) or calendar_of(after) is None:
        return
    assert isinstance(before, Job)
    assert isinstance(after, Job)
    had, has = _revision(before.definition.schedule), _revision(after.definition.schedule)
    checker.revised += has > had
    if has < had and before.incarnation == after.incarnation and not before.removed:
        raise Violation("I11", f"{commit.name} went back from revision {had} of its calendar to {has}")


def i12_a_revision_never_changes(checker: Checker, commit: Commit) -> None:
    """A revision stays as it was written; the latest is never replaced by an older one, and neither goes away."""
    before, after = commit.before, commit.after
    checker.written[commit.name] = commit.at
    if not isinstance(before, SmallDocument):
        return
    if not isinstance(after, SmallDocument):
        raise Violation("I12", f"the calendar {commit.name} was removed")
    if "@" in commit.name and dict(before.body) != dict(after.body):
        raise Violation("I12", f"{commit.name} said {before.body} and now says {after.body}")
    if after.body["revision"] < before.body["revision"]:
        raise Violation("I12", f"{commit.name} went back to revision {after.body['revision']}")


def i12_what_is_announced_is_there(checker: Checker, commit: Commit) -> None:
    """A node that meets the number of a revision finds it in the store."""
    after = commit.after
    if isinstance(after, SmallDocument) and "@" not in commit.name:
        name = f"{commit.name}@{after.body['revision']}"
        if (Kind.CALENDAR, name) not in checker.world.database.docs:
            raise Violation("I12", f"{name} was announced, and is not there")


def i14_every_job_is_under_the_latest_revision(checker: Checker, _: float) -> None:
    """Once it is quiet, every change of a calendar has reached every job, whichever node died while it was made."""
    docs, now = checker.world.database.docs, checker.world.kernel.now
    housekeeping = max(4 * checker.world.options.lease, 60.0)
    for job in checker.world.database.jobs.values():
        calendar = calendar_of(job)
        head = docs.get((Kind.CALENDAR, calendar or ""))
        if head is None or job.removed or not isinstance(head[0], SmallDocument):
            continue
        latest, has = head[0].body["revision"], _revision(job.definition.schedule)
        announced, defined = checker.written.get(calendar or "", 0.0), checker.written.get(f"{job.name} defined", 0.0)
        # A definition that came late, from a node that is gone, is found by a look that is rarer.
        patience = housekeeping * (2.5 if defined <= announced else 7)
        if has != latest and now - max(announced, defined) > patience:
            raise Violation("I14", f"{job.name} is under revision {has} of {calendar}, the latest is {latest}")


def _revision(spec: Mapping[str, Any] | None) -> int:
    return int((spec or {}).get("calendar_revision", 0))


def _begun(before: Job, commit: Commit) -> Iterator[tuple[Hold | WaitingRun, Mapping[str, Any] | None]]:
    """Slots of the schedule that were neither waiting by name nor held before, and the schedule that they are of."""
    had: list[Hold | WaitingRun] = [*before.active, *before.waiting_runs]
    known = {one.run.partition("#")[0] for one in had}
    waiting_run = (
        commit.after.waiting_runs
        if isinstance(commit.after, Job) and commit.after.waiting_runs is not before.waiting_runs
        else ()
    )
    found: list[Hold | WaitingRun] = [*new_holds(commit), *waiting_run]
    for one in found:
        if one.origin not in (Origin.SCHEDULE, Origin.BACKFILL) or one.run.partition("#")[0] in known:
            continue
        request = one.request if one.origin is Origin.BACKFILL else None
        of = (s for s in before.waiting_ranges if s.origin is one.origin and s.first <= one.slot <= s.last)
        waiting_range = next((s for s in of if s.request == request), None)
        yield one, (waiting_range and waiting_range.schedule) or before.definition.schedule


def _table(*tests: Any) -> dict[str, Any]:
    return {test.__name__: test for test in tests}


JOBS = _table(
    i10_slots_are_those_of_the_revision,
    i10_days_off_are_on_record,
    i11_a_job_never_goes_back_to_an_older_revision,
)
CALENDARS = _table(i12_a_revision_never_changes, i12_what_is_announced_is_there)
QUIESCENCE = _table(i14_every_job_is_under_the_latest_revision)
