"""Runs as they are recorded: their names, statuses and records. Control logic never reads the log back.

What runs is in the job's document, what has ended is in the log: a record is appended by the commit that ends an
attempt or decides a slot, and never changes after that.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from solocron.clock import iso
from solocron.model._fast.values import fast_init

__all__ = [
    *("BAD", "ENDED", "GOOD", "Origin", "Record", "Shards", "Status"),
    *("group_of", "job_of", "key_of", "plain", "run_id", "shard_of"),
]

Shards = int | tuple[str, ...]
"""The shards of a slot: that many, numbered from 0, or these names."""


class Status(StrEnum):
    """State or end of an attempt, or the reason why a slot did not run."""

    RUNNING = "running"
    """A node holds it: it is in the job's document, and no record of the log has this status."""
    OFFERED = "offered"
    """Its message waits in a carrier's queue: in the job's document only, as above."""
    SUCCEEDED = "succeeded"
    """The function returned."""
    FAILED = "failed"
    """The function raised."""
    TIMED_OUT = "timed_out"
    """The function was still running at its deadline and was stopped."""
    CANCELLED = "cancelled"
    """A person, its replacement or a shutdown stopped it."""
    LOST = "lost"
    """Its node died or could no longer prove its lease."""
    HANDED_OVER = "handed_over"
    """A carrier has accepted it, and nothing of what follows is known here."""
    SKIPPED = "skipped"
    """The slot did not run by choice: overlap, paused, disabled, calendar."""
    MISSED = "missed"
    """No node ran it in time, and catch-up or start_within ruled it out."""
    DROPPED = "dropped"
    """The queue was full."""


GOOD = frozenset({Status.SUCCEEDED, Status.HANDED_OVER})
"""The ends with which nothing is wrong."""

ENDED = frozenset(Status) - {Status.RUNNING, Status.OFFERED}
"""The statuses of records."""
BAD = frozenset({Status.FAILED, Status.TIMED_OUT, Status.LOST})
"""The ends of an attempt that did not do its work."""


class Origin(StrEnum):
    """Reason why a run waits."""

    SCHEDULE = "schedule"
    TRIGGER = "trigger"
    BACKFILL = "backfill"
    RERUN = "rerun"


@fast_init
@dataclass(frozen=True, kw_only=True)
class Record:
    """One attempt that has ended, or slots that did not run (attempt 0; `first` to `slot`, `count` of them).

    The pair (run, attempt) is unique in the log. `recorded_at` is the store time of the end.
    """

    run: str
    job: str
    attempt: int
    slot: int
    origin: Origin
    status: Status
    key: str
    recorded_at: int
    reason: str | None = None
    node: str | None = None
    session: str | None = None
    fence: int = 0
    claimed_at: int | None = None
    started_at: int | None = None
    finished_at: int | None = None
    error: str | None = None
    result: str | None = None
    progress: str | None = None
    first: int | None = None
    count: int = 1
    asked_by: str | None = None
    """Author of the request that the run came from."""
    note: str | None = None


def plain(text: str | None) -> str | None:
    """Return the string as every store can keep it: NUL and what is not UTF-8 are escaped.

    A traceback may contain anything. If the store refused it, its run could never be finished.
    """
    if text is None:
        return None
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def run_id(job: str, incarnation: int, origin: str, what: str | int) -> str:
    """Return the name of a run, the same on every node. `what` is the slot, or the request that asked for it."""
    digest = hashlib.blake2b(f"{incarnation}|{origin}|{what}".encode(), digest_size=8).hexdigest()
    return f"{job}@{digest}"


def job_of(run: str) -> str:
    """Return the job's name from a run's."""
    return run.rpartition("@")[0]


def group_of(run: str) -> str:
    """Return what the shards of one slot have in common; the run itself if there are none."""
    return run.partition("#")[0]


def shard_of(run: str) -> str | None:
    """Return the shard in a run's name, as a string."""
    return run.partition("#")[2] or None


def key_of(job: str, origin: Origin, slot: int, request: str | None, shard: int | str | None = None) -> str:
    """Return the idempotency key: equal for all attempts and reruns of a slot (or its shard), different for any other.

    For a scheduled run, `request` is its local reading if the instant alone does not tell it from another.
    """
    part = "" if shard is None else f"#{shard}"
    if origin is Origin.TRIGGER:
        return f"{job}!{request}{part}"
    reading = request or ""
    if origin is not Origin.SCHEDULE:  # a rerun's request is the slot's reading and an id
        reading = reading.partition("|")[0] if origin is Origin.RERUN else ""
    return f"{job}@{iso(slot)}" + (f"|{reading}" if reading else "") + part
