"""The options that differ between two definitions of a job, as people write them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from solocron.duration import format_duration
from solocron.errors import InvalidError
from solocron.model.documents.definition import CALENDAR_REVISION, Definition
from solocron.model.timetable import Resolve

__all__ = ["FieldChange", "described", "field_changes"]

_DURATIONS = ("timeout", "start_within")
_LEFT_OUT = ("application", "schedule")
"""The application is compared by the rules for applications, the schedule in words."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """An option, its stored value and its new one; "-" for one that is not given."""

    field: str
    before: str
    after: str


def field_changes(old: Definition, new: Definition, resolve: Resolve) -> tuple[FieldChange, ...]:
    """Return what differs; empty for definitions of equal fingerprint."""
    before, after = old.to_json(), new.to_json()
    found: list[FieldChange] = []
    if _rule(old) != _rule(new):
        said = described(old, resolve), described(new, resolve)
        if said[0] == said[1]:  # such as another rule for clock changes, which the words do not mention
            said = json.dumps(_rule(old), sort_keys=True), json.dumps(_rule(new), sort_keys=True)
        found.append(FieldChange("schedule", *said))
    for name in sorted(before.keys() | after.keys()):
        if name not in _LEFT_OUT and before.get(name) != after.get(name):
            found.append(FieldChange(name, _text(name, before.get(name)), _text(name, after.get(name))))
    return tuple(found)


def described(definition: Definition, resolve: Resolve) -> str:
    """Return the schedule in words."""
    spec = definition.schedule
    if spec is None:
        return "by trigger"
    try:
        schedule = resolve(spec).schedule
    except InvalidError as error:
        return str(error)
    if schedule is not None:
        return schedule.describe()
    return f"{spec['describe']}" if "describe" in spec else f"under the calendar {spec.get('calendar')}"


def _rule(definition: Definition) -> dict[str, Any]:
    """Return the schedule without the revision of its calendar, which the store sets."""
    return {key: value for key, value in (definition.schedule or {}).items() if key != CALENDAR_REVISION}


def _text(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name in _DURATIONS:
        return format_duration(timedelta(microseconds=value))
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
