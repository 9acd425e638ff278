"""Invariants of every commit in a world where many jobs are paused at once."""

from __future__ import annotations

from fnmatch import fnmatchcase

from proof.invariants.checker import Checker, Violation, new_holds
from proof.workloads.pauses import pauses_of
from solocron.clock import iso
from solocron.model.documents.job import Job
from solocron.model.documents.run import Origin
from solocron.model.documents.scoped_pause import ScopedPause
from solocron.testing.simulation.database import Commit

__all__ = ["JOBS", "intervals_over"]

_BY_NAME = (Origin.TRIGGER, Origin.RERUN)


def intervals_over(checker: Checker, job: Job) -> list[tuple[int, int | None, ScopedPause]]:
    """Return the pauses that cover a job, each with its beginning and its end; worked out without the machine."""
    found = []
    for pause in pauses_of(checker.world):
        kind, value = str(pause.scope.reach), pause.scope.value
        name_fits = kind == "match" and fnmatchcase(job.name, value)
        if kind == "all" or name_fits or (kind == "pool" and job.definition.pool == value):
            found.append((pause.at, pause.until, pause))
    return sorted(found, key=lambda one: one[0])


def i27_nothing_starts_under_a_pause(checker: Checker, commit: Commit) -> None:
    """No claim is committed while a pause that covers it stands in the store."""
    after = commit.after
    if not isinstance(after, Job) or not checker.world.options.pauses:
        return
    # What a node puts back after the store went back was claimed before.
    granted = [hold for hold in new_holds(commit) if hold.claimed_at == commit.decided]
    for _, until, pause in intervals_over(checker, after) if granted else ():
        if until is not None and until <= commit.decided:
            continue
        for hold in granted:
            if hold.origin not in _BY_NAME or pause.triggers:
                raise Violation("I27", f"{hold.run} was claimed at {iso(commit.decided)} under {pause}")


def i27_only_slots_of_a_pause_are_skipped_for_it(checker: Checker, commit: Commit) -> None:
    """A slot on record as paused with others fell into such a pause: a lifted one skips nothing more."""
    before = commit.before
    if not isinstance(before, Job) or not checker.world.options.pauses or checker.world.options.goes_back:
        return
    for record in commit.records:
        if record.reason is None or not record.reason.startswith("paused ("):
            continue
        first = record.slot if record.first is None else record.first
        within = [
            one
            for one in intervals_over(checker, before)
            if one[0] < first and (one[1] is None or record.slot <= one[1]) and record.reason == one[2].reason
        ]
        if not within:
            raise Violation("I27", f"{commit.name} {iso(first)} to {iso(record.slot)} is {record.reason}, but was not")


JOBS = {
    test.__name__: test for test in (i27_nothing_starts_under_a_pause, i27_only_slots_of_a_pause_are_skipped_for_it)
}
