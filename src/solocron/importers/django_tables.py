"""Read the tables of django-celery-beat, through a database or through Django. No model of it is imported.

The rows become the shapes that `read_beat_entry` knows, so that there is one reader of Celery's schedules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from typing import Any

from solocron.errors import InvalidError
from solocron.importers.celery import read_beat_entry
from solocron.importers.database import Row, Table
from solocron.importers.entry import ImportedJob, RefusedEntry, each, from_beat_entry, named_once

__all__ = ["read_periodic_tasks"]

_PREFIX = "django_celery_beat_"
_PERIODS = ("days", "hours", "minutes", "seconds", "microseconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class CrontabRow:
    """A row of crontabs; `tz` is its own zone, whatever that of the application is."""

    minute: str
    hour: str
    day_of_week: str
    day_of_month: str
    month_of_year: str
    tz: str


@dataclass(frozen=True, slots=True)
class ClockedRow:
    """A row of clocked times."""

    clocked_time: datetime


@dataclass(frozen=True, slots=True)
class SolarRow:
    """A row of solar events, which have no counterpart."""

    event: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A row of periodic tasks with its schedule."""

    name: str
    task: str
    interval: timedelta | None
    crontab: CrontabRow | None
    solar: SolarRow | None
    clocked: ClockedRow | None
    args: str | None
    kwargs: str | None
    headers: str | None
    queue: str | None
    exchange: str | None
    routing_key: str | None
    priority: int | None
    expires: datetime | None
    expire_seconds: int | None
    one_off: bool
    start_time: datetime | None
    enabled: bool


def read_periodic_tasks(table: Table, *, zone: tzinfo = UTC) -> list[ImportedJob | RefusedEntry]:
    """Return a job for each periodic task, by name. `zone` is that of instants without an offset: Django keeps UTC."""
    tasks = table(f"{_PREFIX}periodictask")
    schedules = {
        kind: {row["id"]: row for row in table(f"{_PREFIX}{name}")}
        for kind, name in _SCHEDULES.items()
        if any(row.get(f"{kind}_id") is not None for row in tasks)
    }
    rows = sorted(tasks, key=lambda row: str(row["name"]))
    return list(named_once(each(_entries(rows, schedules, zone))))


_SCHEDULES = {
    "interval": "intervalschedule",
    "crontab": "crontabschedule",
    "solar": "solarschedule",
    "clocked": "clockedschedule",
}


def _entries(rows: list[Row], schedules: dict[str, dict[Any, Row]], zone: tzinfo) -> Iterator[Any]:
    for row in rows:
        yield str(row["name"]), partial(_job, row, schedules, zone)


def _job(row: Row, schedules: dict[str, dict[Any, Row]], zone: tzinfo) -> ImportedJob:
    def schedule(kind: str) -> Row | None:
        key = row.get(f"{kind}_id")
        return None if key is None else schedules[kind].get(key)

    interval, crontab, solar, clocked = map(schedule, _SCHEDULES)
    task = TaskRow(
        name=str(row["name"]),
        task=str(row["task"]),
        interval=None if interval is None else _interval(interval),
        crontab=None if crontab is None else _crontab(crontab),
        solar=None if solar is None else SolarRow(str(solar["event"])),
        clocked=None if clocked is None else ClockedRow(_instant(clocked["clocked_time"], zone)),
        expires=None if row.get("expires") is None else _instant(row["expires"], zone),
        start_time=None if row.get("start_time") is None else _instant(row["start_time"], zone),
        one_off=bool(row.get("one_off")),
        enabled=bool(row["enabled"]),
        **{name: row.get(name) for name in _PLAIN},
    )
    return from_beat_entry(task.name, read_beat_entry(task))


_PLAIN = ("args", "kwargs", "headers", "queue", "exchange", "routing_key", "priority", "expire_seconds")


def _interval(row: Row) -> timedelta:
    if row["period"] not in _PERIODS:
        raise InvalidError(f"its period is {row['period']!r:.40}, which is not known.")
    return timedelta(**{row["period"]: row["every"]})


def _crontab(row: Row) -> CrontabRow:
    fields = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
    return CrontabRow(**{name: row[name].replace(" ", "") for name in fields}, tz=str(row.get("timezone") or "UTC"))


def _instant(value: Any, zone: tzinfo) -> datetime:
    """Return an instant; SQLite keeps them as text."""
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
