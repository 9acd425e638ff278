"""Invariants after the faults are over and time has passed: nothing stuck, nothing lost, nothing left behind."""

from __future__ import annotations

from proof.invariants import limits
from proof.invariants.checker import Checker, Violation
from proof.invariants.shards import slot_of
from proof.workloads.jobs import unreadable
from solocron.clock import SECOND, iso
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.model.documents.request import is_of, job_named
from solocron.model.documents.run import Origin, group_of
from solocron.model.documents.session import Life, Session

__all__ = ["DRAINED", "QUIESCENCE", "every_slot_is_accounted_for"]


def i14_nothing_is_stuck(checker: Checker, patience: float) -> None:
    """No hold outlives its body, and nothing that is due stays undecided."""
    database = checker.world.database
    long_ago = database.clock() - round(patience * SECOND)
    live = _live(checker)
    for job in database.jobs.values():
        for hold in job.active:
            if hold.claimed_at < long_ago or hold.session not in live:
                raise Violation("I14", f"{hold.run} of {hold.node} is still held, since {iso(hold.claimed_at)}")
        if job.due_at is None or job.due_at >= long_ago or checker.world.is_orphaned(job):
            continue
        if not _parts_of_a_run_just_begun(job, long_ago):
            raise Violation("I14", f"{job.name} has been due since {iso(job.due_at)} and no node decides it")


def _parts_of_a_run_just_begun(job: Job, long_ago: int) -> bool:
    """Return whether everything old that waits is a part of an old slot that was caught up a moment ago.

    The part that waits is another node's, and the rate of catching up had kept the whole slot back.
    """
    begun = {group_of(hold.run) for hold in job.active if hold.claimed_at >= long_ago}
    old = [one for one in job.waiting_runs if one.ready_at < long_ago]
    return not job.waiting_ranges and bool(old) and all(group_of(one.run) in begun for one in old)


def i5_nothing_is_left_lying(checker: Checker, patience: float) -> None:
    """No run is left waiting."""
    database = checker.world.database
    long_ago = database.clock() - round(patience * SECOND)
    for job in database.jobs.values():
        oldest = checker.world.waits_since(job)
        if oldest is not None and oldest < long_ago:
            raise Violation("I5", f"{job.name} has a run that waits since {iso(oldest)}")


def i5_every_slot_is_accounted_for(checker: Checker, _: float) -> None:
    """Every slot up to the cursor has a record, lies in a summary, or is held or waiting in the document."""
    every_slot_is_accounted_for(checker, "I5")


def every_slot_is_accounted_for(checker: Checker, invariant: str) -> None:
    """Raise a violation of this invariant for a slot up to a job's cursor of which the store knows nothing.

    Slots whose records may have been pruned are left out, and worlds in which a person changes what the slots are.
    """
    world = checker.world
    if world.options.request or world.options.deploy or world.options.calendars:
        return
    kept = world.database.clock() - round(world.options.keep * SECOND) + 60 * SECOND
    for job in world.database.jobs.values():
        if job.removed or world.is_orphaned(job) or job.name == unreadable().name:
            continue
        slots = checker.slots_of(job.definition.schedule)
        if slots is None:
            continue
        covered = {hold.slot for hold in job.active} | {waiting_run.slot for waiting_run in job.waiting_runs}
        spans = [(one.first, one.last) for one in job.waiting_ranges]
        for record in world.database.log.values():
            if record.job == job.name and record.origin is Origin.SCHEDULE:
                covered.add(record.slot)
                if record.count > 1 and record.first is not None:
                    spans.append((record.first, record.slot))
        for slot in slots.between(max(job.incarnation, kept), job.cursor):
            if slot not in covered and not any(first <= slot <= last for first, last in spans):
                raise Violation(invariant, f"{job.name} {iso(slot)} has no record, is not held and does not wait")


def i6_nothing_is_recorded_twice(checker: Checker, _: float) -> None:
    """No attempt ended twice."""
    for first, second in checker.world.database.twice:
        raise Violation(
            "I6", f"{first.run} attempt {first.attempt} is on record as {first.status}, then {second.status}"
        )


def i13_answers_were_kept(checker: Checker, _: float) -> None:
    """Every run that a client was promised has been recorded, or is still waiting."""
    known = _known(checker)
    for run in checker.world.clients.promised:
        if run not in known:
            raise Violation("I13", f"{run} was promised to a client, and nothing is known of it")


def i5_no_request_lies_there(checker: Checker, _: float) -> None:
    """A request of a committed transaction became a run, or its job is gone; of a broken job it may wait."""
    database, known = checker.world.database, _known(checker)
    for run, note in checker.world.clients.left.items():
        job = database.jobs.get(job_named(note))
        if job is None or job.removed or not is_of(note, job) or checker.world.is_orphaned(job):
            continue
        if run not in known:
            raise Violation("I5", f"{run} was asked for by a committed transaction, and nothing is known of it")
        if (Kind.REQUEST, note.name) in database.docs:
            raise Violation("I5", f"{run} is known, and its request still lies there")


def _known(checker: Checker) -> set[str]:
    """The runs that are on record or waiting, shards by what they have in common."""
    waiting_run = {
        slot_of(waiting_run.run) for job in checker.world.database.jobs.values() for waiting_run in job.waiting_runs
    }
    return waiting_run | {slot_of(run) for run in checker.attempts} | {slot_of(run) for run, _ in checker.ended}


def i14_takeover_in_time(checker: Checker, _: float) -> None:
    """A node that died in the healed world was buried within its lease and a second of its last renewal."""
    world = checker.world
    for name, died in world.killed_in_peace.items():
        for session in _sessions(checker):
            if session.node == name and session.state is Life.LIVE:
                raise Violation("I14", f"{name} died {world.kernel.now - died:.1f} s ago and was not buried")
    for took, why in world.takeovers:
        # Rates of clocks, four round trips, and the pause that a sweeper makes when it came a moment too soon.
        bound = world.options.lease * (1 + 2 * world.options.clock_rate) + 1 + 16 * world.options.delay
        if took > bound:
            raise Violation("I14", f"{why} was taken over {took:.3f} s after its last renewal, {bound:.1f} s allowed")


def i21_drained(checker: Checker) -> None:
    """No live claim is left."""
    for job in checker.world.database.jobs.values():
        if job.active:
            raise Violation("I21", f"{job.name} is still held after every node has drained: {job.active[0].run}")
    if checker.world.unclean:
        raise Violation("I21", f"{checker.world.unclean[0]} left something running when it was told to stop")


def _sessions(checker: Checker) -> list[Session]:
    docs = checker.world.database.docs
    return [doc for (kind, _), (doc, _) in docs.items() if kind is Kind.SESSION and isinstance(doc, Session)]


def _live(checker: Checker) -> set[str]:
    return {session.name for session in _sessions(checker) if session.state is Life.LIVE}


QUIESCENCE = {
    test.__name__: test
    for test in (
        *(i14_nothing_is_stuck, i5_nothing_is_left_lying, i13_answers_were_kept),
        *(i5_every_slot_is_accounted_for, i6_nothing_is_recorded_twice),
        *(i5_no_request_lies_there, i14_takeover_in_time, limits.i5_no_permit_leaks),
    )
}
DRAINED = {test.__name__: test for test in (i21_drained, limits.i21_no_permit_is_left)}
