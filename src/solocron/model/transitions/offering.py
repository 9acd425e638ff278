"""Hand-over to a carrier: the node publishes a message, the worker that gets it claims the run.

A message is a ticket for one attempt of one run, good once. The node's claim ends when the message is out, and leaves
an offer in the job's document. The worker shows the ticket to the store: the first one gets a hold under its own
session, with a higher fence, and every later copy of the message finds nothing. The broker may therefore lose, double,
delay and reorder messages. An offer that no worker has picked up in time lapses: the next claim publishes it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from solocron.clock import SECOND
from solocron.model._fast.values import replace
from solocron.model.applications import is_anothers
from solocron.model.change import Absent, Change
from solocron.model.documents.job import Hold, Job, WaitingRun
from solocron.model.documents.offer import Offer
from solocron.model.documents.run import Record, Status
from solocron.model.timetable import Resolve
from solocron.model.transitions.catchup import did_not_run
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import hold_of, may_start, overdue, recompute_due, why_overdue
from solocron.model.transitions.finishing import closed, put_back_hold
from solocron.model.transitions.waiting_again import recall, same_attempt

__all__ = [
    "NO_HANDLER_WAIT",
    "Dropped",
    "Handed",
    "NotPickedUp",
    "hand_over",
    "is_followed",
    "offer_of",
    "pick_up",
    "publish_now",
    "put_back",
]

NO_HANDLER_WAIT = 5 * SECOND
"""How long a run waits that reached a worker without its function: the next message may reach one with newer code."""


class Handed(StrEnum):
    """Answers to the end of a hand-over."""

    OFFERED = "offered"
    PUT_BACK = "put back"
    OVERTAKEN = "overtaken"
    """The hold is gone: a worker was faster, the run was cancelled, or the node's session was buried."""


class Dropped(StrEnum):
    """Reasons why a message starts nothing."""

    STALE = "its attempt was picked up before, has ended, or was never handed over"
    NO_JOB = "the store has no job of that name"
    NOT_NOW = "its job is paused, disabled or already running, or its slot is still to come"
    MISSED = "it came after start_within"
    NO_HANDLER = "this process has no handler of that name"


@dataclass(frozen=True, slots=True)
class NotPickedUp:
    """Answer to a message that starts nothing."""

    why: Dropped


def hand_over(
    doc: Job | Absent, *, run: str, fence: int, pickup: int, now: int, resolve: Resolve, note: str | None = None
) -> Change | None:
    """Turn the hold under which a message was published into an offer that stands for `pickup` microseconds.

    A hold that is gone is not an error: the worker may have picked the message up before this write. `note` says why
    the message before was not picked up.
    """
    hold = _handing(doc, run, fence)
    if isinstance(doc, Absent) or hold is None:
        return None if isinstance(doc, Absent) else Change(doc, answer=Handed.OVERTAKEN)
    offered = same_attempt(hold, ready_at=now + pickup, until=now + pickup, note=note)
    job = replace(
        doc,
        active=tuple(other for other in doc.active if other is not hold),
        waiting_runs=(*doc.waiting_runs, offered),
    )
    return Change(recompute_due(job, resolve(job.definition.schedule)), answer=Handed.OFFERED)


def put_back(
    doc: Job | Absent, *, run: str, fence: int, wait: int, note: str | None, now: int, resolve: Resolve
) -> Change | None:
    """Give a hand-over up: the same attempt waits for `wait` microseconds, and no retry is used up.

    The message may be in the queue all the same, if its acceptance is unknown. It stays good.
    """
    hold = _handing(doc, run, fence)
    if isinstance(doc, Absent) or hold is None:
        return None if isinstance(doc, Absent) else Change(doc, answer=Handed.OVERTAKEN)
    job = put_back_hold(doc, hold, ready_at=now + wait, note=note)
    return replace(closed(doc, job, (), now=now, resolve=resolve), answer=Handed.PUT_BACK)


def publish_now(doc: Job | Absent, *, now: int, resolve: Resolve) -> Change | None:
    """End the waits of runs whose messages were not accepted: the carrier can be reached. None if none waits."""
    if isinstance(doc, Absent):
        return None
    waits = [one for one in doc.waiting_runs if one.offer is not None and one.offer.refused and one.ready_at > now]
    if not waits:
        return None
    runs = tuple(replace(one, ready_at=max(now, one.slot)) if one in waits else one for one in doc.waiting_runs)
    return Change(recompute_due(replace(doc, waiting_runs=runs), resolve(doc.definition.schedule)), answer="due")


def pick_up(doc: Job | Absent, *, run: str, attempt: int, now: int, by: Claimant, resolve: Resolve) -> Change | None:
    """Hold the run of a message for the process that got it; the answer is the hold, or a `NotPickedUp`.

    Only an attempt that was handed over can be picked up, so a forged message starts no slot and no retry before its
    time. A hold of the same session is returned once more: the reply to an earlier try of this request was lost. The
    slots of the job are left to the next ordinary claim.
    """
    if isinstance(doc, Absent):
        return None
    ours = _own(doc, run, attempt, by)
    if ours is not None:
        return Change(doc, answer=ours)
    job = recall(doc, lambda hold: hold.run == run and hold.attempt == attempt and is_followed(hold), now=now)
    found = next((one for one in job.waiting_runs if one.run == run and one.attempt == attempt), None)
    if found is None or not is_followed(found):
        return Change(doc, answer=NotPickedUp(Dropped.STALE))
    if overdue(job, found, now=now):
        job = replace(job, waiting_runs=_without(job, found))
        record = did_not_run(job, found, Status.MISSED, why_overdue(found), now=now)
        return _declined(job, Dropped.MISSED, resolve, record=record)
    if not by.has(job.definition.handler) or is_anothers(job.definition, by.application(job.definition.handler)):
        note = f"no handler {job.definition.handler!r} on {by.node}"
        return _declined(_waits(job, found, ready_at=now + NO_HANDLER_WAIT, note=note), Dropped.NO_HANDLER, resolve)
    job, found = _not_awaited(job, found)
    early = now < found.slot  # the store's clock went backwards since the hand-over
    if early or found not in may_start(job, by.kept_back(job, now))[0]:
        return _declined(_waits(job, found, ready_at=now, note=None), Dropped.NOT_NOW, resolve)
    hold = hold_of(job, found, now=now, by=by)
    job = replace(job, active=(*job.active, hold), waiting_runs=_without(job, found), fence=hold.fence)
    slots = resolve(job.definition.schedule)
    # A worker without the calendar cannot compute when the job is due. Making it due at once would be safe as well, but
    # costs a write of a node after every pick-up. A pick-up only takes away from what waits, so that the due time is
    # right or too early.
    return Change(recompute_due(job, slots) if slots.known else job, answer=hold)


def offer_of(doc: Job | Absent, run: str, attempt: int) -> Offer | None:
    """Return the hand-over of an attempt, if its message may still be picked up."""
    if isinstance(doc, Absent):
        return None
    some: list[Hold | WaitingRun] = [*doc.waiting_runs, *doc.active]
    return next((one.offer for one in some if (one.run, one.attempt) == (run, attempt) and one.offer is not None), None)


def is_followed(one: Hold | WaitingRun) -> bool:
    """Return whether a worker may pick it up: its message is in the queue, or on its way there, or may be."""
    return one.offer is not None and one.offer.follows


def _declined(job: Job, why: Dropped, resolve: Resolve, *, record: Record | None = None) -> Change:
    records = () if record is None else (record,)
    return Change(recompute_due(job, resolve(job.definition.schedule)), records, NotPickedUp(why))


def _handing(doc: Job | Absent, run: str, fence: int) -> Hold | None:
    hold = None if isinstance(doc, Absent) else doc.hold(run, fence)
    return None if hold is None or not hold.handing else hold


def _own(job: Job, run: str, attempt: int, by: Claimant) -> Hold | None:
    """Return the hold that this session has of the attempt. Whether its body has begun, its process knows."""
    for hold in job.active:
        if hold.run == run and hold.attempt == attempt and hold.session == by.session and not hold.handing:
            return hold
    return None


def _not_awaited(job: Job, one: WaitingRun) -> tuple[Job, WaitingRun]:
    """Return the job with the place of an offer free, so that only other runs can keep it from starting."""
    assert one.offer is not None
    free = replace(one, offer=replace(one.offer, until=None))
    return replace(job, waiting_runs=(*_without(job, one), free)), free


def _waits(job: Job, one: WaitingRun, *, ready_at: int, note: str | None) -> Job:
    assert one.offer is not None
    waiting = replace(one, ready_at=max(ready_at, one.slot), offer=replace(one.offer, until=None, note=note))
    return replace(job, waiting_runs=(*_without(job, one), waiting))


def _without(job: Job, one: WaitingRun) -> tuple[WaitingRun, ...]:
    return tuple(other for other in job.waiting_runs if other is not one)
