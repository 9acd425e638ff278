"""The job's document: its definition (rarely written) and its state (written with every claim).

All instants and durations are whole microseconds; instants count from 1970 UTC, by the store's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from solocron.model._fast.values import fast_init, replace
from solocron.model.documents.definition import Definition
from solocron.model.documents.offer import Offer
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
"""Source of a job whose stored definition gives way to the one that live nodes declare, whatever its revision."""


@fast_init
@dataclass(frozen=True, kw_only=True)
class Hold:
    """An active claim: the right of one session to run one attempt, proved by its fence."""

    run: str
    slot: int
    origin: Origin
    attempt: int
    tries: int
    """Part of the retry budget that was used before this attempt."""
    session: str
    node: str
    fence: int
    claimed_at: int
    deadline: int | None = None
    request: str | None = None
    payload: Any = None
    cancel: str | None = None
    """Reason to stop, once a stop was requested."""
    crashed: bool = False
    """True if the previous attempt was lost and the fate of its work has not been reported since."""
    shard: int | str | None = None
    shards: Shards | None = None
    only: str | None = None
    among: tuple[str, ...] = ()
    permit: str | None = None
    """Permit under which it runs, if the job has a limit."""
    asked_at: int | None = None
    """Time of the first request to stop."""
    final: bool = False
    """True if no attempt follows, however it ends: its caller waits for it, and is told."""
    asked_by: str | None = None
    """Author of the request that this run came from; None for a slot, or if the author is not known."""
    note: str | None = None
    """The author's reason."""
    offer: Offer | None = None
    """The hand-over that the node makes under this hold; None for a hold under which a body runs."""
    trace: str | None = None
    """The trace of the request that this run came from, as a W3C `traceparent`."""

    @property
    def handing(self) -> bool:
        """True if its node only publishes a message: no body can run under it."""
        return self.offer is not None

    def asked_to_stop(self, why: str, *, now: int) -> Hold:
        """Return the hold with the request on it; the first request stays."""
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
    """Shards of its slot as they were when the first of them was claimed; None before."""
    more: int = 0
    """Number of further shards that wait behind this one: an entry stands for a row of them."""
    only: str | None = None
    """The only node that may run it."""
    among: tuple[str, ...] = ()
    """Nodes that have a part of its slot, if a part may move to another node."""
    asked_by: str | None = None
    note: str | None = None
    offer: Offer | None = None
    """The hand-over of this attempt, once there was one: only then can it be picked up."""
    trace: str | None = None

    @property
    def tried(self) -> bool:
        """True if an attempt of it has ended without success."""
        return self.tries > 0

    @property
    def started(self) -> bool:
        """True if an attempt of it, or another shard of its slot, was claimed to run."""
        return self.tries > 0 or self.shards is not None

    @property
    def begun(self) -> bool:
        """True if it counts as running for overlap: it has started before, or was handed over to a carrier."""
        return self.tries > 0 or self.shards is not None or self.offer is not None

    @property
    def offered(self) -> bool:
        """True while its message is awaited."""
        return self.offer is not None and self.offer.until is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRange:
    """A range of waiting slots: `first` to `last` by the schedule (or by `schedule`, if it has changed since)."""

    first: int
    last: int
    count: int
    origin: Origin = Origin.SCHEDULE
    request: str | None = None
    schedule: Mapping[str, Any] | None = None
    pace: int | None = None
    """Minimum microseconds between two of its starts. A range with a pace comes after all other runs."""
    total: int | None = None
    """Number of slots of a backfill when it was requested."""
    asked_by: str | None = None
    note: str | None = None
    trace: str | None = None
    """A W3C `traceparent`: the span in which a backfill was requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Author, time, reason and end of a pause."""

    at: int
    by: str | None = None
    note: str | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Time, author and reason of the last resume."""

    at: int
    by: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A client's request and its answer, kept so that a repeated request has no second effect."""

    id: str
    answer: str


@fast_init
@dataclass(frozen=True, kw_only=True)
class Last:
    """The last outcome, passed to the next run."""

    run: str
    slot: int
    attempt: int
    status: Status
    finished_at: int
    error: str | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """The last missed slots, and when that was recorded: alarms read this, never the log."""

    at: int
    first: int
    last: int
    count: int
    superseded: bool = False
    """Whether a later slot ran in their place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An attempt that a node put back after the store went back in time."""

    run: str
    attempt: int
    slot: int
    shards: Shards | None = None
    """Shards of its slot, if lost claims had cut it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """The job as it stood after the store went back in time, and what nodes have reported since then."""

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
    """Fingerprint of the set of definitions that it came from; None for a job added as data; or `GIVEN_WAY`."""
    zone_data: str = ""
    place: str | None = None
    """Module and line of the function in the code that declares it; None for a job added as data."""
    defined_at: int | None = None
    """Time at which the present definition was written."""
    defined_by: str | None = None
    """Author of the definition, if it was added as data; None for a declared job, or if the author is not known."""
    defined_note: str | None = None
    resumed: Resume | None = None
    """The last resume, kept beside the definition: it changes as rarely, and a claim need not read it."""
    removed: bool = False

    cursor: int
    nominal: str | None = None
    """Local reading of the cursor, so that nodes with other zone data agree on which slots are decided."""
    due_at: int | None = None
    paused: Pause | None = None
    fence: int = 0
    active: tuple[Hold, ...] = ()
    waiting_runs: tuple[WaitingRun, ...] = ()
    waiting_ranges: tuple[WaitingRange, ...] = ()
    requests: tuple[Request, ...] = ()
    accepted: tuple[int, ...] = ()
    """Fences of the last accepted finishes: a repeated finish is accepted again."""
    failures: int = 0
    paced: int = 0
    """Time at which the last run of a range with a pace was claimed."""
    last: Last | None = None
    missed: Missed | None = None
    back: Back | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """State of newer releases: passed on unchanged."""

    def hold(self, run: str, fence: int) -> Hold | None:
        """Return the hold of this run and fence, or None. A write is accepted only if this finds it."""
        for hold in self.active:
            if hold.fence == fence and hold.run == run:
                return hold
        return None

    def continues(self, run: str) -> bool:
        """Whether an attempt of this very run is held or waits here, so that the last one was not the end of it."""
        return any(one.run == run for one in self.waiting_runs) or any(one.run == run for one in self.active)

    def knows(self, run: str) -> bool:
        """Whether a run, or a shard of it, is held or waits here. What has ended is in the log: ask that afterwards."""
        return any(run in (one.run, group_of(one.run)) for one in self.active) or any(
            run in (one.run, group_of(one.run)) for one in self.waiting_runs
        )

    @property
    def waiting(self) -> int:
        """Number of waiting runs, retries included. A slot that has not begun counts once, however it will be cut."""
        return sum(1 + waiting_run.more for waiting_run in self.waiting_runs) + sum(
            waiting_range.count for waiting_range in self.waiting_ranges
        )

    @property
    def queued(self) -> int:
        """Number of slots and requests in the queue, whose length is bounded.

        A paced range does not count, and what a carrier has counts as running.
        """
        ranges = sum(waiting_range.count for waiting_range in self.waiting_ranges if waiting_range.pace is None)
        return len({group_of(one.run) for one in self.waiting_runs if not one.offered}) + ranges
