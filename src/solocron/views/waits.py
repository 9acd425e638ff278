"""The runs of a job that wait, and what each of them waits for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from solocron.clock import from_us
from solocron.model.documents.job import Job, WaitingRun
from solocron.model.transitions.shards import each

__all__ = ["WaitView", "waits_of"]

_MOST = 50
"""Runs of one job that are shown; `JobView.waiting` has the number of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitView:
    """A run that is to be claimed, now or later."""

    run: str
    slot: datetime
    attempt: int
    origin: str
    ready_at: datetime
    """When it may be claimed, at the earliest."""
    why: str
    """What it waits for: `a retry`, `its time`, `node NAME`, `the job to be resumed`, `the run before`,
    `a permit of LIMIT`, `a worker of CARRIER`, `CARRIER to accept it` or `a node`."""


def waits_of(job: Job, *, now: int) -> tuple[WaitView, ...]:
    """Return the first runs of a job that wait. Ranges of slots that have not begun are in its backfills."""
    views = (
        WaitView(
            run=one.run,
            slot=from_us(one.slot),
            attempt=one.attempt,
            origin=str(one.origin),
            ready_at=from_us(one.ready_at),
            why=_why(job, one, now),
        )
        for one in _runs(job)
    )
    return tuple(islice(views, _MOST))


def _runs(job: Job) -> Iterator[WaitingRun]:
    for waiting_run in job.waiting_runs:
        yield from each(waiting_run)


def _why(job: Job, one: WaitingRun, now: int) -> str:
    """Return the first hindrance of a run, in the order in which a claim meets them."""
    if one.offered and one.offer is not None:
        return f"a worker of {one.offer.carrier}"
    if one.ready_at > now and one.offer is not None and one.offer.note is not None:
        return f"{one.offer.carrier} to accept it"
    if one.ready_at > now:
        return "a retry" if one.attempt > 1 else "its time"
    if job.paused is not None:
        return "the job to be resumed"
    if one.only is not None:
        return f"node {one.only}"
    if job.active:
        return "the run before"
    return f"a permit of {job.definition.limit}" if job.definition.limit is not None else "a node"
