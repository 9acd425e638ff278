"""`TimelineView`: a span in lanes: attempts, takeovers with both fences, refused ends, and the slots to come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from solocron.views.nodes import NodeView
from solocron.views.runs import RunView

__all__ = [
    "BarView",
    "DenseView",
    "LaneView",
    "MarkView",
    "TakeoverView",
    "TimelineView",
    "ToComeView",
    "lanes_of",
    "takeovers_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BarView:
    """One attempt, from its claim to its end; `end` is None while it runs."""

    run: str
    job: str
    attempt: int
    slot: datetime
    start: datetime
    end: datetime | None
    status: str
    node: str | None
    fence: int
    shard: str | None
    origin: str
    taken_from: int | None
    """Fence of the lost attempt whose run it took over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkView:
    """Something that happened in the life of a node: `began`, `renewed` (last), `buried`, `closed` or `refused`."""

    at: datetime
    kind: str
    session: str
    run: str | None = None
    """The run whose end was refused."""
    fence: int | None = None
    outcome: str | None = None
    """How that run would have ended."""
    by: str | None = None
    """The node that buried it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneView:
    """What one node, or one job, did; or what waits in one queue."""

    name: str
    state: str | None
    """Of the node's latest session; `queue` for a queue, None for a job."""
    bars: tuple[BarView, ...]
    marks: tuple[MarkView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeoverView:
    """A run that went from the node that lost it to another one; the fence rises with it."""

    run: str
    job: str
    attempt: int
    """The attempt that was lost."""
    lost_at: datetime
    lost_by: str | None
    lost_fence: int
    taken_at: datetime
    taken_by: str | None
    taken_fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToComeView:
    """A slot that is not due yet."""

    job: str
    slot: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseView:
    """Attempts of a part of the span that are too many to be listed, by status; `node` is None for all nodes.

    The first one counts from the beginning of its column, which may lie a little before the span.
    """

    node: str | None
    start: datetime
    end: datetime
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineView:
    """A span of a namespace."""

    start: datetime
    end: datetime
    now: datetime
    lanes: tuple[LaneView, ...]
    takeovers: tuple[TakeoverView, ...]
    to_come: tuple[ToComeView, ...]
    dense: tuple[DenseView, ...]
    """What is before the first attempt that is listed."""


def takeovers_of(attempts: Sequence[RunView]) -> tuple[TakeoverView, ...]:
    """Return the runs that were lost by one node and claimed by the next, the oldest first."""
    known = {(one.run, one.attempt): one for one in attempts}
    found = []
    for lost in attempts:
        after = known.get((lost.run, lost.attempt + 1))
        if lost.status != "lost" or lost.finished_at is None or after is None or after.claimed_at is None:
            continue
        found.append(
            TakeoverView(
                run=lost.run,
                job=lost.job,
                attempt=lost.attempt,
                lost_at=lost.finished_at,
                lost_by=lost.node,
                lost_fence=lost.fence,
                taken_at=after.claimed_at,
                taken_by=after.node,
                taken_fence=after.fence,
            )
        )
    return tuple(sorted(found, key=lambda one: (one.taken_at, one.run)))


def lanes_of(
    by: str, nodes: Sequence[NodeView], attempts: Sequence[RunView], takeovers: Iterable[TakeoverView]
) -> tuple[LaneView, ...]:
    """Return a lane for each node, live ones first, then for each queue in which messages wait; or for each job."""
    taken = {(one.run, one.attempt + 1): one.lost_fence for one in takeovers}
    bars: dict[str, list[BarView]] = defaultdict(list)
    queued: dict[str, list[BarView]] = defaultdict(list)
    for one in sorted(attempts, key=lambda one: (one.claimed_at or one.slot, one.run)):
        bar = _bar(one, taken.get((one.run, one.attempt)))
        if one.carrier is not None and by != "job":
            queued[one.carrier].append(bar)
        else:
            bars[one.job if by == "job" else one.node or ""].append(bar)
    if by == "job":
        return tuple(LaneView(name=name, state=None, bars=tuple(bars[name]), marks=()) for name in sorted(bars))
    sessions: dict[str, list[NodeView]] = defaultdict(list)
    for node in sorted(nodes, key=lambda node: node.started_at):
        sessions[node.node].append(node)
    lanes = [
        LaneView(
            name=name,
            state=sessions[name][-1].state if name in sessions else "gone",
            bars=tuple(bars.get(name, ())),
            marks=tuple(sorted((mark for node in sessions.get(name, ()) for mark in _marks(node)), key=_time_of)),
        )
        for name in {*sessions, *bars} - {""}
    ]
    lanes += [LaneView(name=name, state="queue", bars=tuple(some), marks=()) for name, some in queued.items()]
    order = {"live": 0, "queue": 1, "silent": 2, "dead": 3, "ended": 4}
    return tuple(sorted(lanes, key=lambda lane: (order.get(lane.state or "", 5), lane.name)))


def _time_of(mark: MarkView) -> datetime:
    return mark.at


def _bar(view: RunView, taken_from: int | None) -> BarView:
    return BarView(
        run=view.run,
        job=view.job,
        attempt=view.attempt,
        slot=view.slot,
        start=view.claimed_at or view.slot,
        end=view.finished_at,
        status=view.status,
        node=view.node,
        fence=view.fence,
        shard=view.shard,
        origin=view.origin,
        taken_from=taken_from,
    )


def _marks(node: NodeView) -> list[MarkView]:
    found = [
        MarkView(at=node.started_at, kind="began", session=node.session),
        MarkView(at=node.last_renewal, kind="renewed", session=node.session),
    ]
    if node.ended_at is not None:
        kind = "closed" if node.buried_by is None else "buried"
        found.append(MarkView(at=node.ended_at, kind=kind, session=node.session, by=node.buried_by))
    found += [
        MarkView(at=one.at, kind="refused", session=node.session, run=one.run, fence=one.fence, outcome=one.outcome)
        for one in node.refused
    ]
    return found
