"""`CarrierView`: what is under way through one carrier."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from solocron.clock import from_us
from solocron.model.documents.job import Job

__all__ = ["CarrierView", "carrier_views"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierView:
    """The runs that one carrier takes to its workers, as they stand."""

    carrier: str
    offered: int
    """Messages that no worker has picked up."""
    since: datetime | None
    """Time of the first hand-over of the one that has waited longest; None if there is none."""
    running: int
    """Runs that workers have picked up and that have not ended."""


def carrier_views(jobs: Iterable[Job]) -> list[CarrierView]:
    """Return a view of each carrier that has anything of these jobs, by name."""
    offered: dict[str, list[int]] = {}
    running: dict[str, int] = {}
    for job in jobs:
        for one in job.waiting_runs:
            if one.offer is not None and one.offer.stands:
                offered.setdefault(one.offer.carrier, []).append(one.offer.since)
        if job.definition.hand_over is not None:
            picked_up = sum(not hold.handing for hold in job.active)
            running[job.definition.run_in] = running.get(job.definition.run_in, 0) + picked_up
    return [
        CarrierView(
            carrier=name,
            offered=len(offered.get(name, ())),
            since=from_us(min(offered[name])) if name in offered else None,
            running=running.get(name, 0),
        )
        for name in sorted({*offered, *running})
    ]
