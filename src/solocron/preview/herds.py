"""Find herds: many jobs that fall due in one minute, and a quieter minute shortly after it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from solocron.clock import SECOND
from solocron.preview.planned_job import PlannedJob, slots_between
from solocron.schedules import instants

__all__ = ["Herd", "Quieter", "find_herds", "horizon"]

_MINUTE = 60 * SECOND
_HOUR = 60 * _MINUTE
_MOST_SLOTS = 300_000
"""Slots that are listed, about a second of work. A fleet with more is looked at for a shorter time, which is said."""
_OCCASIONS = 200
"""Occurrences of a herd for which a quieter minute is looked for."""


@dataclass(frozen=True, slots=True)
class Quieter:
    """A minute with fewer runs, so many minutes after that of the herd."""

    minutes_later: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Herd:
    """The same jobs in one minute, `times` times; `first` is the first of these minutes."""

    first: int
    times: int
    jobs: tuple[str, ...]
    runs: int
    """The runs of that minute."""
    in_one_second: int
    """The runs of the busiest second of it."""
    quieter: Quieter | None


def horizon(jobs: Sequence[PlannedJob], start: int, end: int, most: int = _MOST_SLOTS) -> int:
    """Return the instant up to which the slots of these jobs can be listed: `end`, or earlier if they are too many."""
    while end - start > _HOUR:
        total = 0
        for job in jobs:
            total += instants.count(job.schedule, max(start - 1, job.begins), end - 1)
        if total <= most:
            break
        end = max(start + (end - start) // 2, start + _HOUR)
    return end


def find_herds(jobs: Sequence[PlannedJob], start: int, end: int, *, least: int) -> list[Herd]:
    """Return every set of at least `least` jobs that meet in one minute, the largest first."""
    seconds: dict[int, Counter[int]] = defaultdict(Counter)
    members: dict[int, set[str]] = defaultdict(set)
    for job in jobs:
        for slot in slots_between(job, start, end):
            minute = slot // _MINUTE
            seconds[minute][slot // SECOND] += job.runs
            members[minute].add(job.name)
    load = {minute: sum(found.values()) for minute, found in seconds.items()}
    meetings: dict[frozenset[str], list[int]] = defaultdict(list)
    for minute in sorted(members):
        if len(members[minute]) >= least:
            meetings[frozenset(members[minute])].append(minute)
    found = [
        Herd(
            first=minutes[0] * _MINUTE,
            times=len(minutes),
            jobs=tuple(sorted(names)),
            runs=max(load[minute] for minute in minutes),
            in_one_second=max(max(seconds[minute].values()) for minute in minutes),
            quieter=_quieter(load, minutes[:_OCCASIONS]),
        )
        for names, minutes in meetings.items()
    ]
    return sorted(found, key=lambda herd: (-herd.runs, -herd.times, herd.first))


def _quieter(load: Mapping[int, int], minutes: Iterable[int]) -> Quieter | None:
    """Return the least busy of the 59 minutes after a herd, judged by its busiest occurrence; None if none is better.

    Among equals the one with quiet neighbours is taken, then the nearest: a job that is moved there will not meet the
    next job at its minute.
    """
    held = list(minutes)

    def worst(later: int) -> int:
        return max(load.get(minute + later, 0) for minute in held)

    costs = [worst(later) for later in range(61)]
    best = min(range(1, 60), key=lambda later: (costs[later], max(costs[later - 1], costs[later + 1]), later))
    return Quieter(best, costs[best]) if costs[best] < costs[0] else None
