"""Count runs for each hour of a zone's clock, without listing the slots of jobs that have very many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from solocron.clock import SECOND, from_us, to_us
from solocron.preview.planned_job import PlannedJob, slots_between
from solocron.schedules import Schedule, instants, load_zone

__all__ = ["end_of_days", "hourly_load", "hours"]

_HOUR = 3_600 * SECOND


def end_of_days(start: int, days: int, zone: str) -> int:
    """Return the midnight that ends the last of `days` days; the first is the day of `start`."""
    info = load_zone(zone).info
    last = from_us(start).astimezone(info).date() + timedelta(days=days)
    return to_us(datetime(last.year, last.month, last.day, tzinfo=info))


def hours(start: int, end: int, zone: str) -> list[int]:
    """Return the instants at which an hour of the zone's clock begins; the first holds `start`."""
    known = load_zone(zone)
    found: list[int] = []
    at = start
    while at < end:
        at -= (at + known.offset(at // SECOND) * SECOND) % _HOUR  # zones are off by half and quarter hours, too
        found.append(at)
        at += _HOUR
    return found


def hourly_load(jobs: Iterable[PlannedJob], start: int, end: int, zone: str) -> dict[int, int]:
    """Return the runs that fall due in each hour from `start` on, before `end`, by the hour's first instant.

    Jobs of equal schedules are counted together. A job that comes oftener than every few minutes is counted for each
    hour by arithmetic: listing the slots of "every second" for a week would take longer than the reader waits.
    """
    edges = hours(start, end, zone)
    load = dict.fromkeys(edges, 0)
    together: Counter[tuple[Schedule, int]] = Counter()
    for job in jobs:
        together[job.schedule, max(job.begins, start - 1)] += job.runs
    for (schedule, begins), runs in together.items():
        if instants.count(schedule, begins, end - 1) > 8 * len(edges):
            for low, high in zip(edges, [*edges[1:], end], strict=True):
                first = max(begins, low - 1)
                if first < high - 1:
                    load[low] += runs * instants.count(schedule, first, high - 1)
        else:
            at = 0
            alone = PlannedJob(name="", schedule=schedule, begins=begins)
            for slot in slots_between(alone, start, end):
                while at + 1 < len(edges) and edges[at + 1] <= slot:
                    at += 1
                load[edges[at]] += runs
    return load
