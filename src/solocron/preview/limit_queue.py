"""Play through what a limit lets run: runs fall due, take a permit for their typical duration, or wait for one."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from solocron.preview.herds import horizon
from solocron.preview.planned_job import PlannedJob, slots_between

__all__ = ["LimitForecast", "forecast_limits"]

_MOST_RUNS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitForecast:
    """The queue at one limit until `until`; durations in microseconds."""

    limit: str
    most: int
    jobs: tuple[str, ...]
    until: int
    runs: int
    due_at_once: int
    """The most runs that fall due in the same instant."""
    waiting: int
    """Runs that have to wait for a permit."""
    longest_wait: int
    worst: int | None
    """The slot of the run that waits longest; without any wait, of the most that fall due at once."""
    missed: int
    """Runs that would wait longer than their `start_within` allows."""
    unknown: tuple[str, ...]
    """Jobs without a run on record: they count as if they took no time."""

    @property
    def collides(self) -> bool:
        return self.waiting > 0 or self.due_at_once > self.most


def forecast_limits(jobs: Sequence[PlannedJob], start: int, end: int) -> list[LimitForecast]:
    """Return what happens at each limit that a job names, by its name."""
    named: dict[str, list[PlannedJob]] = {}
    for job in jobs:
        if job.limit is not None:
            named.setdefault(job.limit[0], []).append(job)
    return [_forecast(name, group, start, end) for name, group in sorted(named.items())]


def _forecast(name: str, jobs: Sequence[PlannedJob], start: int, end: int) -> LimitForecast:
    most = max(job.limit[1] for job in jobs if job.limit is not None)
    until = horizon(jobs, start, end, _MOST_RUNS // max(job.runs for job in jobs))
    due = sorted((slot, at) for at, job in enumerate(jobs) for slot in slots_between(job, start, until))
    free = [0] * most
    """When each permit is given back, the earliest first."""
    runs = waiting = missed = longest = at_once = here = 0
    crowded = worst = last = None
    for slot, which in due:
        job = jobs[which]
        here = here + job.runs if slot == last else job.runs
        last = slot
        if here > at_once:
            at_once, crowded = here, slot
        for _ in range(job.runs):
            runs += 1
            wait = max(0, free[0] - slot)
            if job.start_within is not None and wait > job.start_within:
                missed += 1
            else:
                heapq.heapreplace(free, slot + wait + (job.typical or 0))
            if wait:
                waiting += 1
            if wait > longest:
                longest, worst = wait, slot
    return LimitForecast(
        limit=name,
        most=most,
        jobs=tuple(sorted(job.name for job in jobs)),
        until=until,
        runs=runs,
        due_at_once=at_once,
        waiting=waiting,
        longest_wait=longest,
        worst=crowded if worst is None else worst,
        missed=missed,
        unknown=tuple(sorted(job.name for job in jobs if job.typical is None)),
    )
