"""The jobs of a namespace as a plan needs them: slots, runs of each slot, limit, typical duration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from solocron.client import Client
from solocron.client.job_documents import JobDocuments
from solocron.clock import to_us
from solocron.errors import InvalidError
from solocron.jobs.registry import Registry
from solocron.model.documents.job import Job
from solocron.model.documents.permit import parse
from solocron.model.documents.run import Status
from solocron.model.documents.scoped_pause import ScopedPause, standing
from solocron.model.timetable import Resolve
from solocron.runtime import Threads
from solocron.schedules import Schedule, instants
from solocron.views import RunView

__all__ = ["LeftOut", "PlannedJob", "planned_jobs", "slots_between"]

_SAMPLE = 20
"""Runs on record that a typical duration is taken from: the last ones, so that it follows a job that grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """One job with a schedule; instants and durations in microseconds."""

    name: str
    schedule: Schedule
    begins: int = 0
    """Slots up to this instant are decided, or fall into a pause."""
    runs: int = 1
    """Runs that each slot becomes: its shards, or the nodes that it runs on."""
    limit: tuple[str, int] | None = None
    typical: int | None = None
    """The median of its last successful runs; None if it has none on record."""
    start_within: int | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A job that a plan cannot count, and why."""

    job: str
    why: str


def slots_between(job: PlannedJob, start: int, end: int) -> Iterator[int]:
    """Yield the slots of a job from `start` on, before `end`."""
    return instants.between(job.schedule, max(start - 1, job.begins), end - 1)


def planned_jobs(client: Client) -> tuple[list[PlannedJob], list[LeftOut]]:
    """Read the jobs of a namespace. Only jobs with a limit are looked up in the history, for their durations."""
    documents = JobDocuments(client.store, Registry(), Threads(), 0)
    found: list[PlannedJob] = []
    left_out: list[LeftOut] = []
    pauses = standing(documents.pauses(), documents.store.clock())
    for job in documents.all():
        if job.removed or job.definition.schedule is None:
            continue
        planned = _planned(job, documents.resolve, client, [one for one in pauses if one.scope.covers(job)])
        if isinstance(planned, PlannedJob):
            found.append(planned)
        else:
            left_out.append(planned)
    return found, left_out


def _planned(job: Job, resolve: Resolve, client: Client, pauses: Sequence[ScopedPause]) -> PlannedJob | LeftOut:
    """Plan a job; `pauses` are those of many jobs that cover it."""
    definition = job.definition
    if not definition.enabled:
        return LeftOut(job.name, "disabled")
    if job.paused is not None and job.paused.until is None:
        return LeftOut(job.name, "paused")
    for one in pauses:
        if one.until is None:
            return LeftOut(job.name, f"paused with {one.scope}")
    try:
        slots = resolve(definition.schedule)
    except InvalidError as error:  # a job that this release cannot read must not hide the others
        return LeftOut(job.name, str(error))
    if slots.schedule is None:
        return LeftOut(job.name, "its schedule is a class that only its code knows")
    decided = slots.decided_until(job.cursor, job.nominal)
    pause = max([0 if job.paused is None else job.paused.until or 0, *(one.until or 0 for one in pauses)])
    limit = None if definition.limit is None else parse(definition.limit)
    return PlannedJob(
        name=job.name,
        schedule=slots.schedule,
        begins=max(decided, pause),
        runs=_runs(job),
        limit=limit,
        typical=None if limit is None else typical_duration(client.runs(job.name, status=_DONE, limit=_SAMPLE)),
        start_within=definition.start_within,
    )


_DONE = (Status.SUCCEEDED,)


def _runs(job: Job) -> int:
    """Return how many runs a slot becomes; "all" nodes count as one, because their number is not in the job."""
    shards, nodes = job.definition.shards, job.definition.nodes
    if shards is not None:
        return shards if isinstance(shards, int) else len(shards)
    return nodes if isinstance(nodes, int) else 1


def typical_duration(runs: Iterable[RunView]) -> int | None:
    """Return the median duration of runs that have ended, in microseconds; None if there are none."""
    took = [to_us(run.finished_at) - to_us(run.started_at) for run in runs if run.started_at and run.finished_at]
    return round(median(took)) if took else None
