"""Schedules as small JSON, as a job's document keeps them. Reading one back runs no code and imports nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from solocron.clock import iso
from solocron.duration import format_duration
from solocron.errors import InvalidError, ScheduleError
from solocron.schedules.at import At
from solocron.schedules.bounded import Bounded
from solocron.schedules.calendar import Calendar, Calendared
from solocron.schedules.contract import Schedule
from solocron.schedules.cron import DEFAULT_DST, Cron
from solocron.schedules.every import Every
from solocron.schedules.spread import Spread

__all__ = ["dump", "load"]

_SHARED = 4096


def dump(schedule: Schedule) -> dict[str, Any]:
    """Return the schedule as JSON that `load` turns into an equal one; a user's own class is only described."""
    match schedule:
        case Cron():
            spec: dict[str, Any] = {"kind": "cron", "expression": schedule.expression, "tz": schedule.zone}
            if schedule.dst != DEFAULT_DST:
                spec["dst"] = schedule.dst
            if schedule.seed is not None:
                spec["seed"] = schedule.seed
            return spec
        case Every():
            return {"kind": "every", "period": format_duration(schedule.period)}
        case At():
            return {"kind": "at", "at": iso(schedule.at_us)}
        case Bounded():
            bounds = {"starts": schedule.starts, "ends": schedule.ends}
            given = {name: bound for name, bound in bounds.items() if bound is not None}
            inner = dump(schedule.schedule)
            said = {"describe": schedule.describe()} if inner["kind"] == "custom" else {}
            return inner | said | given
        case Spread() if (inner := dump(schedule.schedule))["kind"] != "custom":
            return {**inner, "spread": format_duration(schedule.within), "spread_by": schedule.seed}
        case _:
            return {"kind": "custom", "describe": schedule.describe()}


def load(spec: Mapping[str, Any], calendar: Calendar | None = None) -> Schedule | None:
    """Return the dumped schedule, shared by all equal specs; None for a user's own class, which only code makes.

    A schedule under a calendar needs the revision that it names; without it, None as well.
    """
    try:
        match spec["kind"]:
            case "custom":
                return None
            case "cron":
                dst = tuple(spec.get("dst", DEFAULT_DST).items())
                schedule: Cron | Every | At | Calendared = _cron(spec["expression"], spec["tz"], dst, spec.get("seed"))
            case "every":
                schedule = _every(spec["period"])
            case "at":
                schedule = _at(spec["at"])
            case kind:
                raise ScheduleError(
                    f"unknown kind of schedule {kind!r:.40}; a newer release wrote it: update this one."
                )
        if "calendar" in spec:
            if calendar is None:
                return None
            schedule = _calendared(schedule, calendar, spec["on_holiday"])
        whole = _spread(schedule, spec["spread"], spec["spread_by"]) if "spread" in spec else schedule
        if "starts" not in spec and "ends" not in spec:
            return whole
        return _bounded(whole, spec.get("starts"), spec.get("ends"))
    except InvalidError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ScheduleError(f"a stored schedule cannot be read: {spec!r:.200}; declare the job again.") from None


@lru_cache(maxsize=_SHARED)
def _cron(expression: str, tz: str, dst: tuple[tuple[str, str], ...], seed: str | None) -> Cron:
    return Cron(expression, tz=tz, dst=dict(dst), seed=seed)


@lru_cache(maxsize=_SHARED)
def _every(period: str) -> Every:
    return Every(period)


@lru_cache(maxsize=_SHARED)
def _at(moment: str) -> At:
    return At(datetime.fromisoformat(moment))


@lru_cache(maxsize=_SHARED)
def _spread(schedule: Cron | Every | At | Calendared, within: str, seed: str) -> Spread:
    return Spread(schedule, within, seed)


@lru_cache(maxsize=_SHARED)
def _bounded(schedule: Cron | Every | At | Calendared | Spread, starts: str | None, ends: str | None) -> Bounded:
    return Bounded(schedule, starts, ends)


@lru_cache(maxsize=_SHARED)
def _calendared(schedule: Cron | Every | At, calendar: Calendar, rule: str) -> Calendared:
    return Calendared(schedule, calendar, rule)
