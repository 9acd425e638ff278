"""Check-ins for Sentry's monitors: one a run by schedule, and the errors of its attempts.

The id of a check-in is made from the run, so that any node can close it: a run that dies with its node and succeeds on
another is one green check-in, and one that is lost for good is closed as an error by the node that buried it.
"""

from __future__ import annotations

import logging
import math
import re
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import sentry_sdk
from sentry_sdk.crons import capture_checkin

from solocron.clock import SECOND
from solocron.duration import parse_duration
from solocron.events import Event
from solocron.jobs.registry import Declared
from solocron.model.documents.run import BAD

if TYPE_CHECKING:
    from sentry_sdk._types import MonitorConfig

__all__ = ["CheckIns"]

log = logging.getLogger("solocron")

_WANTED = ("started", "finished", "taken over")
_UNITS = (("week", 604_800), ("day", 86_400), ("hour", 3_600), ("minute", 60))
_IDS = uuid.UUID("6f2b1b1e-7e0c-5a34-9d39-3b2f0a6a1d55")


class CheckIns:
    """Tells Sentry of the events of one scheduler. The SDK sends from a thread of its own: nothing waits here."""

    def __init__(
        self,
        *,
        namespace: Callable[[], str],
        declared: Mapping[str, Declared],
        late_for: Callable[[], int],
        slugs: Mapping[str, str],
        exclude: frozenset[str],
    ) -> None:
        self._namespace = namespace
        self._declared = declared
        self._late_for = late_for
        self._slugs = slugs
        self._exclude = exclude
        self._configs: dict[str, MonitorConfig | None] = {}

    @staticmethod
    def wants(name: str) -> bool:
        """Return whether an event of this name concerns Sentry."""
        return name in _WANTED

    def __call__(self, event: Event) -> None:
        """Follow one event."""
        if event.job in self._exclude:
            return
        if event.name == "started":
            if event.first and event.origin == "schedule":
                self._tell(event.job, event.run, "in_progress")
        elif event.name == "taken over":
            for lost in event.runs:
                if lost["final"] and lost["origin"] == "schedule":
                    self._tell(event.job, lost["run"], "error")
        else:
            if event.exception is not None and event.outcome in BAD:
                self._capture(event)
            if event.final and event.origin == "schedule" and event.outcome != "handed_over":
                self._tell(event.job, event.run, "error" if event.outcome in BAD else "ok", event.duration_s)

    def _tell(self, job: str, run: str, status: str, duration: float | None = None) -> None:
        config = self._config(job)
        if config is None:
            return
        capture_checkin(
            monitor_slug=self._slugs.get(job) or _slug(job),
            check_in_id=uuid.uuid5(_IDS, f"{self._namespace()}|{run}").hex,
            status=status,
            duration=duration,
            monitor_config=config,
        )

    def _capture(self, event: Event) -> None:
        with sentry_sdk.new_scope() as scope:
            scope.set_level("error" if event.final else "warning")
            scope.set_transaction_name(event.job)
            for name, value in (("job", event.job), ("run", event.run), ("attempt", event.attempt)):
                scope.set_tag(f"solocron.{name}", str(value))
            scope.set_tag("solocron.slot", event.slot.isoformat())
            scope.capture_exception(event.exception)

    def _config(self, job: str) -> MonitorConfig | None:
        """Return the monitor of a job; None, said once, if Sentry cannot express its schedule."""
        if job not in self._configs:
            made = self._configs[job] = self._made(job)
            if made is None:
                log.info(
                    "%s has no monitor in Sentry: its schedule is below a minute, not by a plain cron expression or "
                    "period, or not declared here", job, extra={"event": "no monitor", "job": job},
                )  # fmt: skip
        return self._configs[job]

    def _made(self, job: str) -> MonitorConfig | None:
        declared = self._declared.get(job)
        spec = None if declared is None else declared.spec
        schedule = None if spec is None else _schedule(spec)
        if declared is None or spec is None or schedule is None:
            return None
        config: dict[str, Any] = {
            "schedule": schedule,
            "timezone": str(spec.get("tz", "UTC")),
            "checkin_margin": max(1, math.ceil(self._late_for() / SECOND / 60)),
        }
        timeout = declared.options.timeout
        if timeout is not None:
            config["max_runtime"] = max(1, math.ceil(timeout / SECOND / 60))
        return config  # type: ignore[return-value]


def _schedule(spec: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a schedule as Sentry has them; None if that would tell other instants."""
    if not spec.keys() <= {"kind", "expression", "tz", "period"}:
        return None  # a calendar, a spread, bounds or a rule for clock changes: other instants
    if spec["kind"] == "cron" and re.fullmatch(r"[\d*/,A-Za-z-]+( [\d*/,A-Za-z-]+){4}", spec["expression"]):
        return (
            None if "H" in re.split(r"[ ,/-]", spec["expression"]) else {"type": "crontab", "value": spec["expression"]}
        )
    if spec["kind"] == "every":
        seconds = parse_duration(spec["period"], what="period").total_seconds()
        for unit, size in _UNITS:
            if seconds >= size and seconds % size == 0:
                return {"type": "interval", "value": int(seconds // size), "unit": unit}
    return None


def _slug(job: str) -> str:
    return re.sub(r"[^a-z0-9_-]+", "-", job.lower()).strip("-")[:50] or "job"
