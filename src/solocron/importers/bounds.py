"""The first and the last instant of another scheduler's entry, as `starts` and `ends`, each with its note."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from solocron.clock import iso, to_us
from solocron.errors import InvalidError
from solocron.importers.converted import foreign_zone_name
from solocron.schedules import load_zone

__all__ = ["apscheduler_bounds", "beat_bounds"]

_MICROSECOND = timedelta(microseconds=1)


def beat_bounds(start: datetime | None, expires: datetime | None) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the bounds of a periodic task. Beat sends from `start_time` on, and nothing from `expires` on."""
    bounds: dict[str, str] = {}
    notes: list[str] = []
    # Without USE_TZ Django's instants have no zone, and are those of the machine.
    start, expires = (None if one is None else one.astimezone(UTC) for one in (start, expires))
    if start is not None and start > datetime.now(UTC):
        bounds["starts"] = iso(to_us(start))
        notes.append(f"start_time becomes starts={bounds['starts']}.")
    if expires is not None:
        _refuse_over("expires", expires)
        bounds["ends"] = iso(to_us(expires - _MICROSECOND))
        notes.append(f"expires={iso(to_us(expires))} becomes ends=, the last instant before it.")
    return bounds, tuple(notes)


def apscheduler_bounds(
    fields: dict[str, Any], zone: str | tzinfo | None, *, period: timedelta = timedelta(0)
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Take the bounds of a trigger out of its fields; both instants are included, as here.

    A start that has passed changes nothing. Nor does one within the period: it is the default of an interval.
    """
    bounds: dict[str, str] = {}
    notes: list[str] = []
    start, end = (_instant(fields.pop(name, None), name, zone) for name in ("start_date", "end_date"))
    if start is not None and start > datetime.now(UTC) + period:
        bounds["starts"] = iso(to_us(start))
        notes.append(f"start_date becomes starts={bounds['starts']}.")
    if end is not None:
        _refuse_over("end_date", end)
        bounds["ends"] = iso(to_us(end))
        notes.append(f"end_date becomes ends={bounds['ends']}.")
    return bounds, tuple(notes)


def _instant(given: Any, name: str, zone: str | tzinfo | None) -> datetime | None:
    """Return an instant; a date is its first moment, in the zone of the trigger."""
    if given is None:
        return None
    try:
        found = datetime.fromisoformat(given) if isinstance(given, str) else given
    except ValueError:
        found = None
    if isinstance(found, date) and not isinstance(found, datetime):
        found = datetime.combine(found, time())
    if not isinstance(found, datetime):
        raise InvalidError(f"{name}={given!r:.60} is not a date or an instant. Nothing was converted.")
    if found.tzinfo is None:
        if zone is None:
            raise InvalidError(f"{name} has no zone; give timezone= as well. Nothing was converted.")
        found = found.replace(tzinfo=load_zone(foreign_zone_name(zone)).info)
    return found


def _refuse_over(name: str, end: datetime) -> None:
    if end <= datetime.now(UTC):
        raise InvalidError(f"its {name}={iso(to_us(end))} is over, so it would never run. Nothing was converted.")
