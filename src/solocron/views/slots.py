"""The fate of each slot of a schedule, the sum of them, and the answer to why a slot did or did not run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

__all__ = ["AccountingView", "FactView", "SlotView", "WhyView"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotView:
    """One slot of a schedule and what became of it."""

    slot: datetime
    """In the zone of the job."""
    status: str
    """A status of the log, or `running`, `waiting`, `due` (not decided yet), `to come`, `not defined` (then the
    job was not there or had another schedule), `unaccounted` (it is decided, and nothing is on record)."""
    reason: str | None = None
    run: str | None = None
    """Its latest run; None if none was begun."""
    attempts: int = 0
    node: str | None = None
    origin: str | None = None
    late_s: float | None = None
    """From the slot to the start of its latest attempt."""
    took_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingView:
    """The slots of a span that came due, by what became of them: `due` is the sum of `counts`."""

    since: datetime
    until: datetime
    due: int
    counts: Mapping[str, int]
    """By the statuses of `SlotView`."""
    unaccounted: tuple[tuple[str, datetime], ...]
    """Slots that are decided and not on record: job and slot; at most 100."""
    jobs: int
    """Number of jobs whose slots were compared with the records."""
    left_out: Mapping[str, str]
    """Jobs that could not be compared, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactView:
    """A fact about a slot, and when it came about; None if it has no time."""

    at: datetime | None
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyView:
    """Why a slot did or did not run: a verdict in one sentence, and the facts in the order in which one looks."""

    job: str
    asked: datetime
    slot: datetime | None
    """The slot at `asked`, or the last one before it; None if the schedule has none."""
    status: str
    verdict: str
    facts: tuple[FactView, ...]
