"""`NodeView` and `StatusView`: the nodes, and the namespace at a glance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from solocron.clock import SECOND, from_us
from solocron.model.documents.session import Life, Session
from solocron.views.alarms import AlarmView
from solocron.views.carriers import CarrierView
from solocron.views.jobs import ScopedPauseView
from solocron.views.runs import HoldView, RunView, moment

__all__ = ["NodeView", "RefusedEndView", "StatusView"]

_OVER = {Life.DEAD: "dead", Life.SWEPT: "ended"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedEndView:
    """An end of a run that came too late: another node had taken the run over."""

    run: str
    fence: int
    at: datetime
    outcome: str
    """How it would have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node's session as it stands.

    It is live, silent (past its lease, not yet buried), dead (its runs are still to be taken over) or ended.
    """

    node: str
    session: str
    host: str
    pid: int
    pools: tuple[str, ...]
    version: str
    zone_data: str
    revision: int | None
    state: str
    started_at: datetime
    expires_at: datetime
    ended_at: datetime | None
    running: int
    max_running: int | None
    reason: str | None
    lease: timedelta
    last_renewal: datetime
    """When its lease was last begun or renewed, by the store's clock."""
    buried_by: str | None
    """The node that found it dead; None if it lives, or closed its session itself."""
    skew_s: float | None
    """Its wall clock less the store's clock, as of its last renewal."""
    late_s: float
    """How much later than planned its latest late renewal was; 0 if none was."""
    late_at: datetime | None
    refused: tuple[RefusedEndView, ...]
    """The last ends of runs that the store did not accept from it, oldest first."""

    @classmethod
    def of(cls, session: Session, *, now: int) -> NodeView:
        """Make the view of a session."""
        live, report = session.state is Life.LIVE, session.report
        closed = session.ended_at is not None and session.buried_by is None  # which ended its lease at once
        renewed = session.ended_at if closed and session.ended_at else session.expires_at - session.lease
        return cls(
            node=session.node,
            session=session.name,
            host=session.host,
            pid=session.pid,
            pools=session.pools,
            version=session.version,
            zone_data=session.zone_data,
            revision=session.revision,
            state=("silent" if session.expires_at <= now else "live") if live else _OVER[session.state],
            started_at=from_us(session.started_at),
            expires_at=from_us(session.expires_at),
            ended_at=moment(session.ended_at),
            running=session.running,
            max_running=session.max_running,
            reason=session.reason,
            lease=timedelta(microseconds=session.lease),
            last_renewal=from_us(renewed),
            buried_by=session.buried_by,
            skew_s=None if report.skew is None else report.skew / SECOND,
            late_s=report.late_by / SECOND,
            late_at=moment(report.late_at),
            refused=tuple(
                RefusedEndView(run=one.run, fence=one.fence, at=from_us(one.at), outcome=one.outcome)
                for one in report.refused
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView:
    """The namespace at a glance; `counts` are the records of the last 24 hours by status."""

    store: str
    tier: str
    namespace: str
    now: datetime
    nodes: tuple[NodeView, ...]
    running: tuple[HoldView, ...]
    offered: tuple[RunView, ...]
    """Runs that a carrier has and no worker has picked up, the longest wait first."""
    carriers: tuple[CarrierView, ...]
    """What is under way through each carrier, by its name."""
    counts: Mapping[str, int]
    jobs: int
    paused: tuple[str, ...]
    """Jobs with a pause of their own."""
    pauses: tuple[ScopedPauseView, ...]
    """Pauses of many jobs that stand, the oldest first."""
    orphaned: tuple[str, ...]
    blocked: tuple[str, ...]
    overdue: tuple[str, ...]
    """Due for more than five minutes, and not claimed."""
    unserved: Mapping[str, int]
    """Pools without a live node, and how many of their jobs do not run because of that."""
    alarms: tuple[AlarmView, ...]
    """Open alarms, as found by the nodes that look for them."""
