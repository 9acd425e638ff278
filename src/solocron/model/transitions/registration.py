"""Register, redefine, remove: definitions get into the store without ever losing or inventing a slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from solocron.model.applications import Peers, TakenOn, is_anothers
from solocron.model.change import Absent, Change
from solocron.model.documents.definition import CALENDAR_REVISION, Definition
from solocron.model.documents.job import GIVEN_WAY, Hold, Job
from solocron.model.documents.run import Record, Status
from solocron.model.documents.scoped_pause import ScopedPause
from solocron.model.timetable import Resolve, Timetable
from solocron.model.transitions.catchup import give_up, leave_out, pass_over
from solocron.model.transitions.claiming import catch_up_to, recompute_due, wake
from solocron.model.transitions.untold import write_off_untold
from solocron.model.transitions.waiting_again import recall

__all__ = ["PASSED", "Proposal", "define", "give_way", "move_to_now", "propose", "remove"]

PASSED = "its only instant had passed when it was declared"
"""Reason of the record that a job with a single instant gets instead of a run; also the answer of `define`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A node's proposal for a job: its definition, the revision of the deployment, the set that it belongs to."""

    definition: Definition
    source: str | None
    revision: int | None = None
    zone_data: str = ""
    by: str | None = None
    """Author of a definition that is added as data, and the reason."""
    note: str | None = None
    place: str | None = None
    """Module and line of the function, which a deploy may move without changing the definition."""


def propose(
    doc: Job | Absent,
    *,
    proposal: Proposal,
    fleet: Peers,
    now: int,
    late_for: int,
    resolve: Resolve,
    pauses: Sequence[ScopedPause] = (),
) -> Change | None:
    """Write a declared job, unless the stored definition takes precedence.

    A job of another application is left alone while a node of the fleet declares it from there, and taken on when none
    does. Their revisions are not compared, because each application counts its own. A lower revision never overwrites a
    higher one; a definition that has given way is left to the highest live revision. Between equal revisions, a
    different definition is written only when no live session still has the stored one, so that old and new code running
    side by side do not flip-flop. New jobs are written at once. A definition that some live node cannot read is written
    when that node is gone.
    """
    if not fleet.can_read(proposal.definition):
        return None
    if isinstance(doc, Absent):
        return define(doc, proposal=proposal, now=now, late_for=late_for, resolve=resolve, pauses=pauses)
    if not doc.removed and is_anothers(doc.definition, proposal.definition.application):
        before = str(doc.definition.application)
        if fleet.declares(doc.definition.handler, before):
            return None
        change = define(doc, proposal=proposal, now=now, late_for=late_for, resolve=resolve, pauses=pauses)
        return None if change is None else replace(change, answer=TakenOn(before))
    mine, theirs = proposal.revision or 0, doc.revision or 0
    if mine < (fleet.revision if doc.source == GIVEN_WAY else theirs):
        return None
    contested = mine == theirs and doc.source != proposal.source and doc.source in fleet.sets
    # By fingerprint: a store returns lists where tuples were declared.
    if doc.definition.fingerprint == proposal.definition.fingerprint and not doc.removed:
        return _adopt(doc, proposal, contested=contested, resolve=resolve)
    if contested:
        return None
    return define(doc, proposal=proposal, now=now, late_for=late_for, resolve=resolve, pauses=pauses)


def _adopt(doc: Job, proposal: Proposal, *, contested: bool, resolve: Resolve) -> Change | None:
    """Adopt a stored definition equal to ours: its source, if the set it came from is gone, and newer zone data.

    A missing application is filled in, and the place of its function is brought up to date.
    """
    job = doc
    if doc.definition.application is None and proposal.definition.application is not None:
        job = replace(job, definition=replace(doc.definition, application=proposal.definition.application))
    newer = (proposal.revision or 0) > (doc.revision or 0)
    if newer or (doc.source != proposal.source and not contested):
        job = replace(job, source=proposal.source, revision=proposal.revision, place=proposal.place)
        if doc.source == GIVEN_WAY:  # it was due for no other reason
            job = recompute_due(job, resolve(job.definition.schedule))
    if proposal.place not in (None, doc.place) and not contested:
        job = replace(job, place=proposal.place)
    if proposal.zone_data > doc.zone_data:
        job = recompute_due(replace(job, zone_data=proposal.zone_data), resolve(job.definition.schedule))
    return None if job is doc else Change(job, answer="adopted")


def give_way(doc: Job | Absent, *, now: int) -> Change | None:
    """Forget the revision, so that the nodes that look at the job next write the definition that they declare.

    The job is due at once, so that they look. Until one of them has written, the stored definition stays valid.
    """
    if isinstance(doc, Absent) or doc.removed or doc.source in (None, GIVEN_WAY):
        return None
    due = now if doc.due_at is None else min(doc.due_at, now)
    return Change(replace(doc, revision=None, source=GIVEN_WAY, due_at=due), answer="gives way")


def define(
    doc: Job | Absent,
    *,
    proposal: Proposal,
    now: int,
    late_for: int,
    resolve: Resolve,
    pauses: Sequence[ScopedPause] = (),
) -> Change | None:
    """Make the job what is proposed. Slots up to now are decided by the old rule, then the cursor is now.

    None if the old rule is a revision of a calendar that is not known here: its slots would be lost.
    """
    new = proposal.definition if isinstance(doc, Absent) else _no_older(doc.definition, proposal.definition)
    slots = resolve(new.schedule)
    if isinstance(doc, Absent):
        job = Job(
            name=doc.name,
            incarnation=now,
            definition=new,
            revision=proposal.revision,
            source=proposal.source,
            zone_data=proposal.zone_data,
            place=proposal.place,
            defined_at=now,
            defined_by=proposal.by,
            defined_note=proposal.note,
            cursor=now,
        )
        passed = slots.before(now + 1) if (new.schedule or {}).get("kind") == "at" and new.enabled else None
        if passed is None:
            return Change(recompute_due(job, slots), answer="added")
        missed: list[Record] = []
        pass_over(job, slots, missed, passed - 1, passed, Status.MISSED, PASSED, now=now)
        return Change(recompute_due(job, slots), tuple(missed), answer=PASSED)
    old = doc.definition
    records: list[Record] = []
    job = doc
    changed = old.schedule != new.schedule
    if doc.removed:  # a new job beside the last bodies of the old one: no slots in between, and no pause
        job = _from_now(replace(job, paused=None), resolve(old.schedule), slots, now)
    elif changed or old.enabled != new.enabled:
        old_slots = resolve(old.schedule)
        if _to_be_fetched(old, old_slots):
            return None
        job, decided = catch_up_to(job, old_slots, now=now, late_for=late_for, pauses=pauses)
        records.extend(decided)
        pause = job.paused
        asleep = not old.enabled if pause is None else changed
        if asleep:  # its slots so far belong to the old rule; the pause itself continues
            job = replace(wake(job, old_slots, records, until=now, now=now), paused=pause)
        if pause is None or changed:
            records.extend(leave_out(job, old_slots, job.cursor, now, now=now))
            job = _from_now(job, old_slots, slots, now)
        if changed:
            job = replace(
                job,
                waiting_ranges=tuple(
                    s if s.schedule else replace(s, schedule=old.schedule) for s in job.waiting_ranges
                ),
            )
    job = replace(
        job,
        definition=new,
        revision=proposal.revision,
        source=proposal.source,
        zone_data=proposal.zone_data,
        place=proposal.place,
        defined_at=now,
        defined_by=proposal.by,
        defined_note=proposal.note,
        removed=False,
    )
    return Change(recompute_due(job, slots), tuple(records), "changed")


def _to_be_fetched(definition: Definition, slots: Timetable) -> bool:
    """Return whether its slots are not known here but can be: a revision of a calendar is in the store."""
    return not slots.known and "calendar" in (definition.schedule or {})


def _no_older(old: Definition, new: Definition) -> Definition:
    """Return the new definition, under no older revision of its calendar: its author may not know the latest."""
    had, has = old.schedule or {}, new.schedule or {}
    revision = had.get(CALENDAR_REVISION, 0) if had.get("calendar") == has.get("calendar") else 0
    if revision <= has.get(CALENDAR_REVISION, 0):
        return new
    return replace(new, schedule={**has, CALENDAR_REVISION: revision})


def _from_now(job: Job, old: Timetable, new: Timetable, now: int) -> Job:
    """Return the job with nothing to decide before now, nor before what nodes with other zone data have decided."""
    cursor = max(now, job.cursor, old.decided_until(job.cursor, job.nominal))
    return replace(job, cursor=cursor, nominal=new.nominal(cursor))


def remove(
    doc: Job | Absent,
    *,
    now: int,
    late_for: int,
    resolve: Resolve,
    pauses: Sequence[ScopedPause] = (),
    reason: str = "the job was removed",
) -> Change | None:
    """Remove the job: waiting runs are recorded as cancelled, running ones are asked to stop.

    The document is deleted with the end of the last one.
    """
    if isinstance(doc, Absent) or doc.removed:
        return None
    slots = resolve(doc.definition.schedule)
    job, decided = catch_up_to(doc, slots, now=now, late_for=late_for, pauses=pauses)
    records = list(decided)
    job = give_up(recall(job, _every, now=now), records, Status.CANCELLED, reason, now=now)
    if not job.active:
        return Change(None, tuple(records), "removed")
    job = replace(
        job,
        removed=True,
        due_at=None,
        active=tuple(hold.asked_to_stop(reason, now=now) for hold in job.active),
    )
    return Change(job, tuple(records), "removed")


def _every(hold: Hold) -> bool:
    return True


def move_to_now(doc: Job | Absent, *, fence: int, now: int, resolve: Resolve, stopped: int = 0) -> Change | None:
    """Move the cursor to now after a backup was restored, or to `stopped` if that is later.

    Runs that the backup does not know of may have happened, so nothing before now runs again. The store's clock may
    have stepped back since the nodes `stopped`: then they ran slots that lie ahead of it.
    """
    if isinstance(doc, Absent) or doc.removed:
        return None
    slots = resolve(doc.definition.schedule)
    records: list[Record] = []
    why = "the store was restored from a backup"
    job, untold = write_off_untold(doc, slots, now=now) if slots.known else (doc, ())
    records.extend(untold)
    job = give_up(recall(job, _every, now=now), records, Status.SKIPPED, why, now=now)
    job = replace(
        wake(job, slots, records, until=max(now, stopped), now=now, why=why),
        paused=doc.paused,
        fence=max(doc.fence + 1, fence),
        # A hold of the time of the backup may have ended well since. It is asked to stop and never repeated.
        active=tuple(hold.asked_to_stop(why, now=now) for hold in job.active),
    )
    return Change(recompute_due(job, slots), tuple(records), "moved")
