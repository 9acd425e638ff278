"""`make_plan`: the coming days of a fleet as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solocron.preview.clock_notes import ClockNote, clock_notes
from solocron.preview.herds import Herd, find_herds, horizon
from solocron.preview.hourly_load import end_of_days, hourly_load
from solocron.preview.limit_queue import LimitForecast, forecast_limits
from solocron.preview.planned_job import LeftOut, PlannedJob

__all__ = ["Plan", "make_plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The runs of the fleet from `start` on, before `end`; instants in microseconds."""

    start: int
    end: int
    zone: str
    jobs: int
    left_out: tuple[LeftOut, ...]
    load: dict[int, int]
    """Runs of each hour, by the instant at which it begins."""
    herds: tuple[Herd, ...]
    herds_until: int
    """Herds are looked for until then: `end`, unless there are too many slots."""
    clock_notes: tuple[ClockNote, ...]
    limits: tuple[LimitForecast, ...]

    @property
    def runs(self) -> int:
        return sum(self.load.values())


def make_plan(
    jobs: Sequence[PlannedJob], *, start: int, days: int, zone: str, herd: int, left_out: Sequence[LeftOut] = ()
) -> Plan:
    """Return the plan of these jobs for `days` days of the zone's calendar, of which the first is that of `start`."""
    end = end_of_days(start, days, zone)
    listed = horizon(jobs, start, end)
    return Plan(
        start=start,
        end=end,
        zone=zone,
        jobs=len(jobs),
        left_out=tuple(left_out),
        load=hourly_load(jobs, start, end, zone),
        herds=tuple(find_herds(jobs, start, listed, least=herd)),
        herds_until=listed,
        clock_notes=tuple(clock_notes(jobs, start, end)),
        limits=tuple(forecast_limits(jobs, start, end)),
    )
