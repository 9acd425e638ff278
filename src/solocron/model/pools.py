"""Pools that have work and no node to do it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from solocron.model.documents.job import Job
from solocron.model.documents.session import Session, is_live

__all__ = ["TICKED", "last_tick", "unserved"]

TICKED = "its tick is over"
"""End reason of a tick's session. An outside caller starts the next tick, so having no live node is not a fault."""


def unserved(jobs: Iterable[Job], sessions: Sequence[Session], *, now: int) -> dict[str, list[str]]:
    """Return the jobs that want to run, by pool, of every pool that neither live nodes nor ticks serve."""
    live = {pool for one in sessions if is_live(one, now=now) for pool in one.pools}
    found: dict[str, list[str]] = {}
    for job in jobs:
        pool = job.definition.pool
        if pool not in live and job.definition.enabled and job.paused is None and not job.removed:
            found.setdefault(pool, []).append(job.name)
    return {pool: names for pool, names in sorted(found.items()) if last_tick(pool, sessions) is None}


def last_tick(pool: str, sessions: Sequence[Session]) -> int | None:
    """Return the end of a pool's last session if it was a tick's; None if it was a node's, or there was none.

    A crashed node did not close its session: it ended when its lease did.
    """
    ends = [
        (one.expires_at if one.ended_at is None else one.ended_at, one.reason == TICKED)
        for one in sessions
        if pool in one.pools
    ]
    at, ticked = max(ends, default=(0, False))
    return at if ticked else None
