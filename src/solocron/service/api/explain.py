"""`/explain`: say in words what an expression does. No store is asked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from solocron.clock import SystemClock, from_us
from solocron.schedules import Cron, instants, lint
from solocron.service.call import ApiCall

__all__ = ["ExplainAnswer", "explain", "schedule_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainAnswer:
    """An expression in words, with its next slots."""

    expression: str
    zone: str
    description: str
    next: tuple[datetime, ...]
    notes: tuple[str, ...]


def schedule_of(call: ApiCall) -> Cron:
    """Return the schedule that a caller asks about; raise ScheduleError if there is none such."""
    given = call.given
    chosen = {rule: given[rule] for rule in ("gap", "fold") if given[rule] is not None}
    return Cron(given["expression"], tz=given["tz"] or "UTC", dst=chosen or None, seed=given["name"])


def explain(call: ApiCall) -> ExplainAnswer:
    """Return a cron expression in words, its next slots, and what may surprise its owner."""
    given, schedule = call.given, schedule_of(call)
    start = SystemClock().wall()
    slots, at = list[datetime](), instants.after(schedule, start)
    while at is not None and len(slots) < given["n"]:
        slots.append(from_us(at))
        at = instants.after(schedule, at)
    return ExplainAnswer(
        expression=schedule.expression,
        zone=schedule.zone,
        description=schedule.describe(),
        next=tuple(slots),
        notes=tuple(lint(schedule, start)),
    )
