"""A hold that becomes a waiting run: the next attempt, or the same one if it was only to be handed over.

No body runs under a hold whose node publishes a message, so its end is no end of an attempt: nothing is recorded, no
retry is used up, and whatever ends a waiting run ends it at once.
"""

from __future__ import annotations

from collections.abc import Callable

from solocron.model._fast.values import replace
from solocron.model.documents.job import Hold, Job, WaitingRun
from solocron.model.documents.offer import Offer

__all__ = ["occupied_by", "recall", "same_attempt", "waiting_again"]


def waiting_again(
    hold: Hold, *, ready_at: int, attempt: int, tries: int, crashed: bool, offer: Offer | None = None
) -> WaitingRun:
    """Return the run of a hold as it waits from now on."""
    return WaitingRun(
        run=hold.run,
        slot=hold.slot,
        origin=hold.origin,
        ready_at=max(ready_at, hold.slot),  # a store clock that went backwards must not start it early
        attempt=attempt,
        tries=tries,
        request=hold.request,
        payload=hold.payload,
        crashed=crashed,
        shard=hold.shard,
        shards=hold.shards,
        only=hold.only,
        among=hold.among,
        asked_by=hold.asked_by,
        note=hold.note,
        offer=offer,
        trace=hold.trace,
    )


def same_attempt(hold: Hold, *, ready_at: int, until: int | None = None, note: str | None = None) -> WaitingRun:
    """Return the run of a hold under which it was handed over: the same attempt, which a message may still pick up.

    `until` is set if the message was published. `note` says why it was not, or why the one before did not start.
    """
    assert hold.offer is not None, "a hold under which a body may have started is the end of an attempt"
    offer = replace(hold.offer, until=until, note=note)
    return waiting_again(
        hold, ready_at=ready_at, attempt=hold.attempt, tries=hold.tries, crashed=hold.crashed, offer=offer
    )


def recall(job: Job, which: Callable[[Hold], bool], *, now: int) -> Job:
    """Return the job with the hand-overs under way among these holds as waiting runs.

    Their nodes learn with their next write that the hold is gone, and need not stop anything.
    """
    handing = [hold for hold in job.active if hold.handing and which(hold)]
    if not handing:
        return job
    return replace(
        job,
        active=tuple(hold for hold in job.active if hold not in handing),
        waiting_runs=(*job.waiting_runs, *(same_attempt(hold, ready_at=now) for hold in handing)),
    )


def occupied_by(job: Job) -> list[Hold | WaitingRun]:
    """Return what occupies a place of the job's overlap: every hold, and every run whose message is awaited."""
    return [*job.active, *(one for one in job.waiting_runs if one.offered)]
