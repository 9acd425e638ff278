"""Checks before a node starts: mistakes that would make every replica run everything, or a job never run."""

from __future__ import annotations

import logging

from solocron import surroundings
from solocron.calendars.revisions import Calendars
from solocron.calendars.views import unknown_calendar
from solocron.errors import ConfigurationError, StoreUnavailable
from solocron.scheduler.core import Core

__all__ = ["refuse_store_per_replica", "refuse_unknown_calendars"]

log = logging.getLogger("solocron")


def refuse_store_per_replica(core: Core) -> None:
    """Refuse a file per replica: each of them would run everything, which is what this library prevents."""
    if core.configuration.store_named:
        return
    if surroundings.in_container():
        raise ConfigurationError(
            "no store was given, and in a container every replica would get a file of its own and run everything. "
            "Nothing was started; set SOLOCRON_STORE or give Scheduler(...) a URL that all replicas share."
        )
    if not surroundings.is_terminal():
        log.warning(
            "no store was given: using ./solocron.db, which only processes in this folder of this machine share",
            extra={"event": "default store"},
        )


def refuse_unknown_calendars(core: Core) -> None:
    """Refuse a job under a calendar that does not exist: it would never run."""
    wanted = {name: job.calendar for name, job in core.registry.jobs.items() if job.calendar is not None}
    if not wanted:
        return
    try:
        known = Calendars(core.open().store, core.registry).latest()
    except StoreUnavailable:
        return  # a node waits for its store; its registrar checks again
    for job, calendar in wanted.items():
        if calendar not in known:
            raise unknown_calendar(calendar, known, job=job, untouched="Nothing was started.")
