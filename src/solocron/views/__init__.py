"""The values that queries return: frozen, with aware datetimes, and without any internal class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from solocron.clock import iso, to_us
from solocron.model.policy import Backoff, CatchUp, Overlap
from solocron.views.alarms import AlarmsView, AlarmView, MessageView, SilenceView
from solocron.views.audit import AuditPage, AuditView
from solocron.views.carriers import CarrierView
from solocron.views.health import HealthView
from solocron.views.jobs import (
    BackfillView,
    JobView,
    LimitView,
    PauseView,
    PermitView,
    ResumeView,
    ScopedPauseView,
    SyncView,
)
from solocron.views.nodes import NodeView, RefusedEndView, StatusView
from solocron.views.runs import WAITING, HoldView, RunView
from solocron.views.slots import AccountingView, FactView, SlotView, WhyView
from solocron.views.timeline import (
    BarView,
    DenseView,
    LaneView,
    MarkView,
    TakeoverView,
    TimelineView,
    ToComeView,
)
from solocron.views.waits import WaitView

__all__ = [
    "WAITING",
    "AccountingView",
    "AlarmView",
    "AlarmsView",
    "AuditPage",
    "AuditView",
    "BackfillView",
    "BarView",
    "CarrierView",
    "DenseView",
    "FactView",
    "HealthView",
    "HoldView",
    "JobView",
    "LaneView",
    "LimitView",
    "MarkView",
    "MessageView",
    "NodeView",
    "PauseView",
    "PermitView",
    "RefusedEndView",
    "ResumeView",
    "RunView",
    "ScopedPauseView",
    "SilenceView",
    "SlotView",
    "StatusView",
    "SyncView",
    "TakeoverView",
    "TimelineView",
    "ToComeView",
    "WaitView",
    "WhyView",
    "to_json",
]


_AS_IT_IS = frozenset([str, int, float, bool, type(None)])


@cache
def _names_of(kind: type) -> tuple[str, ...] | None:
    """Return the names of the fields of a dataclass, None for any other class; a page asks ten thousand times."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


def to_json(value: Any) -> Any:
    """Convert a view to plain JSON: instants as ISO-8601 in UTC, durations as seconds.

    The command line's `--json` and the HTTP API both print what it returns.
    """
    if type(value) in _AS_IT_IS:
        return value
    if isinstance(value, datetime):
        return iso(to_us(value))
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Overlap | CatchUp):
        return str(value)
    if isinstance(value, Backoff):
        first, cap = timedelta(microseconds=value.first), timedelta(microseconds=value.cap)
        return {"first": to_json(first), "factor": value.factor, "cap": to_json(cap), "jitter": value.jitter}
    names = _names_of(value.__class__)
    if names is not None:
        found = ((name, getattr(value, name)) for name in names)
        return {name: item if type(item) in _AS_IT_IS else to_json(item) for name, item in found}  # most are plain
    if isinstance(value, Mapping):
        return {str(key): item if type(item) in _AS_IT_IS else to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [item if type(item) in _AS_IT_IS else to_json(item) for item in value]
    return value
