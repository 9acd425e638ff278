"""Scheduled jobs that run once, however many replicas you run."""

from solocron.engine.context import AsyncRun, Run
from solocron.errors import (
    Cancelled,
    Conflict,
    Invalid,
    InvalidSchedule,
    LeaseLost,
    MissingExtra,
    NotFound,
    SolocronError,
    StaleFence,
    StoreError,
    StoreRefused,
    StoreUnavailable,
    WaitTimeout,
)
from solocron.jobs.decorators import at, cron, every
from solocron.model.policy import Backoff, allow, catch_up_all
from solocron.scheduler import Scheduler
from solocron.schedules import At, Cron, Every, Schedule
from solocron.version import __version__

__all__ = [
    "AsyncRun",
    "At",
    "Backoff",
    "Cancelled",
    "Conflict",
    "Cron",
    "Every",
    "Invalid",
    "InvalidSchedule",
    "LeaseLost",
    "MissingExtra",
    "NotFound",
    "Run",
    "Schedule",
    "Scheduler",
    "SolocronError",
    "StaleFence",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "WaitTimeout",
    "__version__",
    "allow",
    "at",
    "catch_up_all",
    "cron",
    "every",
]
