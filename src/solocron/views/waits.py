"""The runs of a job that wait, and what each of them waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from solocron.clock import from_us
from solocron.model.documents.job import Job, WaitingRun
from solocron.model.documents.scoped_pause import ScopedPause, kept_back
from solocron.model.transitions.claiming import may_start
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
    """What it waits for: `a retry`, `its time`, `the job to be enabled`, `the job to be resumed`,
    `the pause of SCOPE to be lifted`, `node NAME`, `the run before`, `a permit of LIMIT`, `a worker of CARRIER`,
    `CARRIER to accept it` or `a node`."""


def waits_of(job: Job, *, pauses: Sequence[ScopedPause] = (), now: int) -> tuple[WaitView, ...]:
    """Return the first runs of a job that wait. Ranges of slots that have not begun are in its backfills."""
    if not job.waiting_runs:
        return ()
    covering = [one for one in pauses if one.stands(now) and one.scope.covers(job)]
    in_turn = {one.run for one in may_start(replace(job, paused=None))[0]}
    views = (
        WaitView(
            run=one.run,
            slot=from_us(one.slot),
            attempt=one.attempt,
            origin=str(one.origin),
            ready_at=from_us(one.ready_at),
            why=_not_ready(one, now)
            or _kept_back(job, whole, covering, now)
            or _not_chosen(job, one, is_in_turn=whole.run in in_turn),
        )
        for whole, one in _runs(job)
    )
    return tuple(islice(views, _MOST))


def _runs(job: Job) -> Iterator[tuple[WaitingRun, WaitingRun]]:
    """Yield every run that waits, as the document has it and each of its shards."""
    for whole in job.waiting_runs:
        for one in each(whole):
            yield whole, one


def _not_ready(one: WaitingRun, now: int) -> str | None:
    """Return what its time waits for; None if it has come."""
    if one.offered and one.offer is not None:
        return f"a worker of {one.offer.carrier}"
    if one.ready_at <= now:
        return None
    if one.offer is not None and one.offer.note is not None:
        return f"{one.offer.carrier} to accept it"
    return "a retry" if one.attempt > 1 else "its time"


def _kept_back(job: Job, one: WaitingRun, covering: Sequence[ScopedPause], now: int) -> str | None:
    """Return the pause or switch that keeps it; None if none does. What a person requested passes most pauses."""
    alone = replace(job, active=(), waiting_runs=(one,), waiting_ranges=())
    if not any(may_start(replace(alone, paused=None))):
        return "the job to be enabled"
    if not any(may_start(alone)):
        return "the job to be resumed"
    if not any(may_start(alone, kept_back(covering, job, now=now))):
        pause = next((pause for pause in covering if pause.triggers), covering[0])
        return f"the pause of {pause.scope} to be lifted"
    return None


def _not_chosen(job: Job, one: WaitingRun, *, is_in_turn: bool) -> str:
    """Return what a run that may start waits for, in the order in which a claim asks."""
    if one.only is not None:
        return f"node {one.only}"
    if not is_in_turn:
        return "the run before"
    return f"a permit of {job.definition.limit}" if job.definition.limit is not None else "a node"
