"""Read the `beat_schedule` of a Celery application, as `celery beat` reads it when it starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import tzinfo
from functools import partial
from typing import Any

from solocron.errors import InvalidError
from solocron.importers.celery import read_beat_entry
from solocron.importers.converted import foreign_zone_name
from solocron.importers.entry import ImportedJob, RefusedEntry, each, from_beat_entry, named_once
from solocron.schedules import load_zone

__all__ = ["is_application", "read_beat_schedule"]


def read_beat_schedule(app: Any, *, tz: str | None = None) -> list[ImportedJob | RefusedEntry]:
    """Return a job for each entry, by name; `tz` is for an application whose zone is that of its machine."""
    if not is_application(app):
        raise InvalidError(f"a {type(app).__name__} is not a Celery application. Nothing was imported.")
    try:
        app.loader.import_default_modules()  # tasks of these modules may add entries
        app.finalize()
        entries = app.conf.beat_schedule or {}
    except Exception as error:  # noqa: BLE001 - it imports a user's modules and configuration
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InvalidError(f"the Celery application cannot be set up: {reason}. Nothing was imported.") from None
    if not isinstance(entries, Mapping):
        raise InvalidError(f"beat_schedule is a {type(entries).__name__}, not a mapping. Nothing was imported.")
    zone = tz or _zone(app.timezone)
    return list(named_once(each(_entries(entries, zone))))


def is_application(value: Any) -> bool:
    """Return whether a value looks like a Celery application; Celery itself need not be imported for that."""
    return hasattr(value, "conf") and hasattr(value, "finalize")


def _zone(zone: tzinfo) -> str:
    try:
        return load_zone(foreign_zone_name(zone)).name
    except InvalidError:
        raise InvalidError(
            "the application's zone is that of its machine, which has no name here; give it with --tz. Nothing was "
            "imported."
        ) from None


def _entries(entries: Mapping[str, Any], zone: str) -> Iterator[Any]:
    for name in sorted(entries, key=str):
        yield str(name), partial(_job, str(name), entries[name], zone)


def _job(name: str, entry: Any, zone: str) -> ImportedJob:
    if not isinstance(entry, Mapping):
        raise InvalidError(f"it is a {type(entry).__name__}, not a mapping with a task and a schedule.")
    return from_beat_entry(name, read_beat_entry(entry, tz=zone))
