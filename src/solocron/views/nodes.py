"""`NodeView` and `StatusView`: the nodes, and the namespace at a glance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from solocron.clock import from_us
from solocron.model.documents.session import Life, Session
from solocron.views.alarms import AlarmView
from solocron.views.jobs import ScopedPauseView
from solocron.views.runs import RunView, moment

__all__ = ["NodeView", "StatusView"]

_OVER = {Life.DEAD: "dead", Life.SWEPT: "ended"}


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

    @classmethod
    def of(cls, session: Session, *, now: int) -> NodeView:
        """Make the view of a session."""
        live = session.state is Life.LIVE
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
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView:
    """The namespace at a glance; `counts` are the records of the last 24 hours by status."""

    store: str
    tier: str
    namespace: str
    now: datetime
    nodes: tuple[NodeView, ...]
    running: tuple[RunView, ...]
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
