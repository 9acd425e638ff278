"""The job's document: what was declared (rarely written) and how it stands (written with every claim).

All instants and durations are whole microseconds; instants count from 1970 UTC, by the store's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from solocron.model._fast.values import fast_init, replace
from solocron.model.documents.definition import Definition
from solocron.model.documents.run import Origin, Shards, Status, group_of, plain

__all__ = [
    "GIVEN_WAY",
    "Back",
    "Hold",
    "Job",
    "Last",
    "Missed",
    "Pause",
    "Request",
    "Told",
    "WaitingRange",
    "WaitingRun",
]

GIVEN_WAY = ""
"""The source of a job whose stored definition gives way to the one that live nodes declare, whatever its revision."""


@fast_init
@dataclass(frozen=True, kw_only=True)
class Hold:
    """An active claim: the right of one session to run one attempt, proved by its fence."""

    run: str
    slot: int
    origin: Origin
    attempt: int
    tries: int
    """How much of the retry budget was used before this attempt."""
    session: str
    node: str
    fence: int
    claimed_at: int
    deadline: int | None = None
    request: str | None = None
    payload: Any = None
    cancel: str | None = None
    """Why the holder shall stop it, once somebody asked."""
    crashed: bool = False
    """Whether the attempt before it was lost, and nobody has said since what became of its work."""
    shard: int | str | None = None
    shards: Shards | None = None
    only: str | None = None
    among: tuple[str, ...] = ()
    permit: str | None = None
    """The permit under which it runs, where the job has a limit."""
    asked_at: int | None = None
    """When it was first asked to stop."""

    def asked_to_stop(self, why: str, *, now: int) -> Hold:
        """The hold with the request on it; the first request stays."""
        return self if self.cancel else replace(self, cancel=plain(why), asked_at=now)


@fast_init
@dataclass(frozen=True, kw_only=True)
class WaitingRun:
    """A run that waits to be claimed: queued, late, triggered, handed back, or waiting for its next attempt."""

    run: str
    slot: int
    origin: Origin
    ready_at: int
    attempt: int = 1
    tries: int = 0
    request: str | None = None
    payload: Any = None
    crashed: bool = False
    shard: int | str | None = None
    shards: Shards | None = None
    """The shards of its slot as they were when the first of them was taken; None before."""
    more: int = 0
    """How many shards after this one wait as well: an entry stands for a row of them."""
    only: str | None = None
    """The node that alone may run it."""
    among: tuple[str, ...] = ()
    """The nodes that have a part of its slot, where a part may move to another."""

    @property
    def tried(self) -> bool:
        """Whether an attempt of it has ended badly."""
        return self.tries > 0

    @property
    def begun(self) -> bool:
        """Whether an attempt of it, or another shard of its slot, was taken: then it counts as running for overlap."""
        return self.tries > 0 or self.shards is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRange:
    """Slots that wait, as a range: `first` to `last` by the schedule (or by `schedule`, if it has changed since)."""

    first: int
    last: int
    count: int
    origin: Origin = Origin.SCHEDULE
    request: str | None = None
    schedule: Mapping[str, Any] | None = None
    pace: int | None = None
    """Microseconds between two of its starts, at the least; such a range lets everything else go first."""
    total: int | None = None
    """How many a backfill had when it was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Who paused the job, when, why and until when."""

    at: int
    by: str | None = None
    note: str | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request of a client and its answer, kept so that a repeated one has no second effect."""

    id: str
    answer: str


@fast_init
@dataclass(frozen=True, kw_only=True)
class Last:
    """The last outcome, handed to the next run."""

    run: str
    slot: int
    attempt: int
    status: Status
    finished_at: int
    error: str | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """The last slots that were missed, and when that was recorded: alarms look here, never into the log."""

    at: int
    first: int
    last: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An attempt that a node put back after the store went back."""

    run: str
    attempt: int
    slot: int
    shards: Shards | None = None
    """The shards of its slot, where claims that are lost had cut it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """The job as it stood after the store went back, and what nodes have reported since (`transitions/rejoin.py`)."""

    epoch: str
    fence: int
    cursor: int
    told: tuple[Told, ...] = ()


@fast_init
@dataclass(frozen=True, kw_only=True)
class Job:
    """A job's document. Every slot up to `cursor` has been decided; nothing is due before `due_at`."""

    name: str
    incarnation: int
    definition: Definition
    revision: int | None = None
    source: str | None = None
    """The fingerprint of the set of definitions that it came from; None for a job added as data; or `GIVEN_WAY`."""
    zone_data: str = ""
    removed: bool = False

    cursor: int
    nominal: str | None = None
    """The cursor's local reading, so that nodes with other zone data agree on what has been decided."""
    due_at: int | None = None
    paused: Pause | None = None
    fence: int = 0
    active: tuple[Hold, ...] = ()
    waiting_runs: tuple[WaitingRun, ...] = ()
    waiting_ranges: tuple[WaitingRange, ...] = ()
    requests: tuple[Request, ...] = ()
    accepted: tuple[int, ...] = ()
    """Fences of the last accepted finishes: a repeated one is answered as accepted."""
    failures: int = 0
    paced: int = 0
    """When the last run of a range with a pace was claimed."""
    last: Last | None = None
    missed: Missed | None = None
    back: Back | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """State that newer code keeps here: handed on as it is."""

    def hold(self, run: str, fence: int) -> Hold | None:
        """The very hold, or None: a write is accepted only if this finds it."""
        for hold in self.active:
            if hold.fence == fence and hold.run == run:
                return hold
        return None

    @property
    def waiting(self) -> int:
        """How many runs wait, retries included; a slot that has not begun counts once, however it will be cut."""
        return sum(1 + waiting_run.more for waiting_run in self.waiting_runs) + sum(
            waiting_range.count for waiting_range in self.waiting_ranges
        )

    @property
    def queued(self) -> int:
        """How many slots and requests stand in the queue, whose length is bounded; what is paced stands aside."""
        ranges = sum(waiting_range.count for waiting_range in self.waiting_ranges if waiting_range.pace is None)
        return len({group_of(waiting_run.run) for waiting_run in self.waiting_runs}) + ranges
