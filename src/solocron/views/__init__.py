"""The values that queries return: frozen, with aware datetimes, and without any internal class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from solocron.clock import iso, to_us
from solocron.views.health import HealthView
from solocron.views.jobs import BackfillView, JobView, LimitView, PauseView, PermitView, ResumeView, ScopedPauseView
from solocron.views.nodes import AlarmView, NodeView, StatusView
from solocron.views.runs import WAITING, RunView

__all__ = [
    "WAITING",
    "AlarmView",
    "BackfillView",
    "HealthView",
    "JobView",
    "LimitView",
    "NodeView",
    "PauseView",
    "PermitView",
    "ResumeView",
    "RunView",
    "ScopedPauseView",
    "StatusView",
    "to_json",
]


def to_json(value: Any) -> Any:
    """Convert a view to plain JSON: instants as ISO-8601 in UTC."""
    if isinstance(value, datetime):
        return iso(to_us(value))
    if hasattr(type(value), "__dataclass_fields__"):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value
