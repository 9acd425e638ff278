"""The nights on which a clock change skips or repeats a slot, for each job that names a time of such an hour."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from solocron.preview.planned_job import PlannedJob
from solocron.schedules import Bounded, Calendared, dst_notes, instants, rule_of

__all__ = ["ClockNote", "clock_notes"]


@dataclass(frozen=True, slots=True)
class ClockNote:
    """A clock change that concerns a job, as a sentence that begins with the date."""

    job: str
    zone: str
    note: str


def clock_notes(jobs: Iterable[PlannedJob], start: int, end: int) -> list[ClockNote]:
    """Return a note for each job and clock change between, by date."""
    span = timedelta(microseconds=end - start)
    found = []
    for job in jobs:
        rule = rule_of(job.schedule)
        if isinstance(rule, Calendared):
            rule = rule.schedule
        if isinstance(job.schedule, Bounded):
            rule = Bounded(rule, job.schedule.starts, job.schedule.ends)
        found += [ClockNote(job.name, instants.zone(rule), note) for note in dst_notes(rule, start, span)]
    return sorted(found, key=lambda note: (note.note[:10], note.job))
