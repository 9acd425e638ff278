"""Alarms as callers see them: what is open, what was told of it, and what is silenced."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = ["AlarmView", "AlarmsView", "MessageView", "SilenceView"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmView:
    """An alarm: what is wrong with what, since when, and until when it was, if it is closed."""

    kind: str
    subject: str
    detail: str
    since: datetime
    state: str
    """`told`, `untold` (it is told unless it passes), `silenced`, `information` (it is never told), or `closed`."""
    silenced_until: datetime | None = None
    owner: str | None = None
    """Who answers for the job."""
    runbook: str | None = None
    """Where it says what to do."""
    until: datetime | None = None
    """When its cause was found gone; None while it is open."""

    @property
    def counts(self) -> bool:
        """Whether it is something wrong that a person wants to know."""
        return self.state in ("told", "untold")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """The last message about a kind of alarms that is raised."""

    kind: str
    count: int
    since: datetime
    raised_at: datetime
    node: str
    delivery: str
    """`done`, `refused` (no target accepted it), `doubtful` (one may have) or `unknown` (its node has not said)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceView:
    """Alarms of which nothing is told until an instant: a kind, a pattern of jobs, or `kind:pattern`."""

    what: str
    until: datetime
    since: datetime
    by: str | None
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmsView:
    """The open alarms of a namespace, the messages that are raised, and the silences."""

    alarms: tuple[AlarmView, ...]
    messages: tuple[MessageView, ...]
    silences: tuple[SilenceView, ...]
