"""Refusals: reasons why the model did not do what a caller asked of a job.

A change that refuses leaves the document as it is and has a `Refusal` as its answer. `client/refusals.py` turns it into
an error. A trigger left by a transaction has no caller to raise to; its refusal becomes a record.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Refusal", "Refused"]


class Refused(StrEnum):
    """Reasons of a refusal."""

    DISABLED = "disabled"
    """The job is disabled where it is declared."""
    DECLARED = "declared"
    """The job is declared in code, so its definition cannot be replaced by data."""
    NO_SHARD = "no shard"
    """The job has no shard of that name."""
    QUEUE_FULL = "queue full"
    """The job has its maximum number of waiting runs."""
    UNFINISHED = "unfinished"
    """The slot still runs or waits."""
    NO_SLOTS = "no slots"
    """The schedule has no slot in that range."""
    TOO_MANY_SLOTS = "too many slots"
    """The range has more slots than one backfill may have; `count` says how many."""
    TOO_MANY_BACKFILLS = "too many backfills"
    """The job has its maximum number of backfills under way."""
    BACKFILL_OVER = "backfill over"
    """The backfill with this request id has ended."""
    BUSY = "busy"
    """As many runs of the job are active as may run at once."""
    PAUSED = "paused"
    """A pause of many jobs keeps back what is requested too."""
    EACH_SHARD = "each shard"
    """The job has shards, and the request names none."""
    UNKNOWN_SCHEDULE = "unknown schedule"
    """Only the code that declares the job knows its schedule."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer of a change that refused."""

    reason: Refused
    count: int = 0
