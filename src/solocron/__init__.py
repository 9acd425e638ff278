"""Scheduled jobs that run once, however many replicas you run.

Names are imported when they are first used: a module that only declares jobs does not pay for the engine.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solocron.dispatch.carrier import Carrier, Message, NotAccepted
    from solocron.effects.locks.decorator import locked
    from solocron.effects.locks.held import assert_locked
    from solocron.effects.locks.lock import Lock
    from solocron.errors import (
        Cancelled,
        ConfigurationError,
        ConflictError,
        EmptyStore,
        InvalidError,
        KeyBusy,
        LeaseLost,
        LockBusy,
        LockLost,
        MissingExtra,
        NotEntered,
        NotFoundError,
        RunStopped,
        ScheduleError,
        SolocronError,
        StaleFence,
        StoreError,
        StoreRefused,
        StoreUnavailable,
        TimedOut,
        UncertainOutcome,
        WaitTimeout,
    )
    from solocron.events import Event
    from solocron.jobs.decorators import at, cron, every
    from solocron.jobs.given import given
    from solocron.jobs.job_spec import JobSpec
    from solocron.jobs.options import JobOptions
    from solocron.jobs.retrying import RetryDecision
    from solocron.model.documents.run import Status
    from solocron.model.policy import Backoff, CatchUp, Overlap, allow, catch_up_all
    from solocron.runs.async_run import AsyncRun
    from solocron.runs.current import current_run
    from solocron.runs.run import Run
    from solocron.scheduler import Scheduler
    from solocron.scheduler.aio import AsyncScheduler
    from solocron.schedules import At, Cron, Every, Schedule
    from solocron.telemetry.log import RunFilter
    from solocron.version import __version__
    from solocron.views import (
        AccountingView,
        AuditPage,
        AuditView,
        HealthView,
        HoldView,
        JobView,
        NodeView,
        RunView,
        SlotView,
        StatusView,
        WhyView,
    )

_HOMES = {
    "solocron.dispatch.carrier": ("Carrier", "Message", "NotAccepted"),
    "solocron.runs.async_run": ("AsyncRun",),
    "solocron.runs.current": ("current_run",),
    "solocron.runs.run": ("Run",),
    "solocron.errors": (
        *(
            "Cancelled",
            "ConfigurationError",
            "ConflictError",
            "InvalidError",
            "ScheduleError",
            "LeaseLost",
            "MissingExtra",
            "NotFoundError",
        ),
        *("SolocronError", "StaleFence", "StoreError", "StoreRefused", "StoreUnavailable", "WaitTimeout"),
        *("EmptyStore", "KeyBusy", "LockBusy", "LockLost", "NotEntered", "RunStopped", "TimedOut", "UncertainOutcome"),
    ),
    "solocron.events": ("Event",),
    "solocron.jobs.decorators": ("at", "cron", "every"),
    "solocron.jobs.given": ("given",),
    "solocron.jobs.job_spec": ("JobSpec",),
    "solocron.jobs.options": ("JobOptions",),
    "solocron.jobs.retrying": ("RetryDecision",),
    "solocron.effects.locks.decorator": ("locked",),
    "solocron.effects.locks.held": ("assert_locked",),
    "solocron.effects.locks.lock": ("Lock",),
    "solocron.model.documents.run": ("Status",),
    "solocron.model.policy": ("Backoff", "CatchUp", "Overlap", "allow", "catch_up_all"),
    "solocron.scheduler": ("Scheduler",),
    "solocron.scheduler.aio": ("AsyncScheduler",),
    "solocron.schedules": ("At", "Cron", "Every", "Schedule"),
    "solocron.telemetry.log": ("RunFilter",),
    "solocron.version": ("__version__",),
    "solocron.views": (
        *("AccountingView", "AuditPage", "AuditView", "HealthView", "HoldView", "JobView", "NodeView", "RunView"),
        *("SlotView", "StatusView", "WhyView"),
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AccountingView",
    "AsyncRun",
    "AsyncScheduler",
    "At",
    "AuditPage",
    "AuditView",
    "Backoff",
    "Cancelled",
    "Carrier",
    "CatchUp",
    "ConfigurationError",
    "ConflictError",
    "Cron",
    "EmptyStore",
    "Event",
    "Every",
    "HealthView",
    "HoldView",
    "InvalidError",
    "JobOptions",
    "JobSpec",
    "JobView",
    "KeyBusy",
    "LeaseLost",
    "Lock",
    "LockBusy",
    "LockLost",
    "Message",
    "MissingExtra",
    "NodeView",
    "NotAccepted",
    "NotEntered",
    "NotFoundError",
    "Overlap",
    "RetryDecision",
    "Run",
    "RunFilter",
    "RunStopped",
    "RunView",
    "Schedule",
    "ScheduleError",
    "Scheduler",
    "SlotView",
    "SolocronError",
    "StaleFence",
    "Status",
    "StatusView",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "TimedOut",
    "UncertainOutcome",
    "WaitTimeout",
    "WhyView",
    "__version__",
    "allow",
    "assert_locked",
    "at",
    "catch_up_all",
    "cron",
    "current_run",
    "every",
    "given",
    "locked",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'solocron' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
