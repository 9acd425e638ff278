"""Alarms about jobs that should have run and did not: their causes in the documents, and the life of one alarm.

An alarm is a small document of its own. The node that finds a cause opens it, and the node that finds the cause gone
closes it. If several nodes look at the same time, one of them writes, because the document is compared and swapped. An
observation carries the store time from before it was made, so that an old observation cannot undo a newer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from solocron.clock import SECOND, iso
from solocron.model.applications import can_run, rivals
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents.job import Job
from solocron.model.documents.scoped_pause import KeptBack, ScopedPause, kept_back
from solocron.model.documents.session import Session, is_live

__all__ = [
    "KINDS",
    "TURN",
    "Bounds",
    "Cause",
    "causes",
    "close",
    "forget",
    "is_open",
    "is_waiting",
    "open_",
    "take_turn",
]

KINDS = {
    "missed": "slots were not run in time, and catch-up does not run them either",
    "late": "it is due for longer than the bound, and no node has claimed it",
    "orphaned": "no live node of its pool has its handler",
    "two applications": "a live node has its handler from another application than its own",
    "stuck": "a run goes on past its deadline",
    "failing": "so many runs in a row ended badly",
    "no node": "a pool has jobs and no live node",
    "set aside": "its document fails on its own and is left out",
    "tier": "the store can be trusted with less than was demanded",
}

TURN = ".turn"
"""The document by which nodes take turns in looking. No alarm has this name."""
_REMEMBERED = 600 * SECOND
"""Minimum time for which a miss stays an alarm, even if the job runs again at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Thresholds of the alarms, in microseconds."""

    every: int
    late: int
    failing: int
    patience: int
    """How long a job may be without a node that can run it: a deploy is not an alarm."""
    tier: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Reason for an alarm."""

    kind: str
    subject: str
    detail: str
    patience: int = 0

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.subject}"


# --- causes ----------------------------------------------------------------------------------------------------------


def causes(
    jobs: Iterable[Job],
    sessions: Sequence[Session],
    *,
    aside: frozenset[str],
    tier: str,
    bounds: Bounds,
    now: int,
    pauses: Sequence[ScopedPause] = (),
) -> dict[str, Cause]:
    """Return every cause that these documents give, by the alarm's name."""
    live = [session for session in sessions if is_live(session, now=now)]
    pools = {pool for session in live for pool in session.pools}
    found: dict[str, Cause] = {}
    if bounds.tier is not None and tier > bounds.tier:
        told = f"tier {tier}, {bounds.tier} was demanded"
        found["tier:store"] = Cause(kind="tier", subject="store", detail=told)
    for job in jobs:
        paused = job.paused is not None or kept_back(pauses, job, now=now) is not KeptBack.NOTHING
        for cause in _of(job, live, pools, aside=aside, bounds=bounds, now=now, paused=paused):
            found.setdefault(cause.name, cause)
    return found


def _of(
    job: Job,
    live: Sequence[Session],
    pools: set[str],
    *,
    aside: frozenset[str],
    bounds: Bounds,
    now: int,
    paused: bool,
) -> Iterator[Cause]:
    leases = {session.name: session.lease for session in live}
    for hold in job.active:
        lease = leases.get(hold.session)
        if lease is not None and hold.deadline is not None and now > hold.deadline + lease:
            told = f"{hold.run} runs on {hold.node}, past its deadline of {iso(hold.deadline)}"
            yield Cause(kind="stuck", subject=job.name, detail=told)
    if job.removed or not job.definition.enabled or paused:
        return
    if job.name in aside:
        yield Cause(kind="set aside", subject=job.name, detail="its document fails on its own; see `solocron doctor`")
    if job.failures >= bounds.failing:
        what = "" if job.last is None or not job.last.error else f": {job.last.error.strip().rpartition(chr(10))[2]}"
        yield Cause(kind="failing", subject=job.name, detail=f"{job.failures} runs in a row ended badly{what}")
    if (missed := _missed(job, now)) is not None:
        yield Cause(kind="missed", subject=job.name, detail=missed)
    for application, nodes in rivals(job.definition, live).items():
        told = f"it belongs to {job.definition.application}, and {nodes[0]} has its handler from {application}"
        yield Cause(kind="two applications", subject=job.name, detail=told, patience=bounds.patience)
    pool = job.definition.pool
    if pool not in pools:
        told = f"{job.name} and whatever else is in it cannot run"
        yield Cause(kind="no node", subject=pool, detail=told, patience=bounds.patience)
    elif not any(can_run(session, job.definition) for session in live):
        told = f"no live node of pool {pool} has its handler {job.definition.handler}"
        yield Cause(kind="orphaned", subject=job.name, detail=told, patience=bounds.patience)
    elif job.due_at is not None and now - job.due_at > bounds.late and job.name not in aside:
        yield Cause(kind="late", subject=job.name, detail=f"due since {iso(job.due_at)}, and no node claimed it")


def _missed(job: Job, now: int) -> str | None:
    """Return the detail of a miss, until the job has run again and for `_REMEMBERED` in any case.

    A job that catches up a moment later has still missed its slots.
    """
    missed = job.missed
    if missed is None:
        return None
    ran_since = job.last is not None and job.last.finished_at > missed.at
    if ran_since and now - missed.at >= _REMEMBERED:
        return None
    if missed.count == 1:
        return f"the slot of {iso(missed.last)}"
    return f"{missed.count} slots, {iso(missed.first)} to {iso(missed.last)}"


# --- one alarm -------------------------------------------------------------------------------------------------------


def is_open(doc: SmallDocument | Absent) -> bool:
    return isinstance(doc, SmallDocument) and doc.body.get("state") == "open"


def is_waiting(doc: SmallDocument | Absent) -> bool:
    """Return whether there is a cause, but not yet for long enough."""
    return isinstance(doc, SmallDocument) and doc.body.get("state") == "waiting"


def open_(doc: SmallDocument | Absent, cause: Cause, *, seen: int, now: int, token: str) -> Change | None:
    """Record a cause observed at `seen`; None if there is nothing to do.

    The answer is `raised` for the caller that opened the alarm.
    """
    if is_open(doc):
        return None
    since = seen
    if isinstance(doc, SmallDocument):
        if is_waiting(doc):
            since = doc.body["since"]
            if seen - since < cause.patience:
                return None
        elif seen <= doc.body["at"]:
            return None  # the observation is older than the one that closed it
    state = "open" if seen - since >= cause.patience else "waiting"
    body = {
        "state": state, "kind": cause.kind, "subject": cause.subject, "detail": cause.detail, "since": since,
        "at": now, "raised": token,
    }  # fmt: skip
    return Change(
        SmallDocument(kind=Kind.ALARM, name=doc.name, body=body), answer="raised" if state == "open" else "waiting"
    )


def close(doc: SmallDocument | Absent, *, seen: int, now: int, token: str) -> Change | None:
    """Record that the cause was gone at `seen`. The answer is `cleared` for the caller that closed the alarm."""
    if not (is_open(doc) or is_waiting(doc)):
        return None
    assert isinstance(doc, SmallDocument)
    if seen <= doc.body["at"]:
        return None  # the observation is older than the one that opened it
    answer = "cleared" if is_open(doc) else "forgotten"
    return Change(
        replace(doc, body={**doc.body, "state": "closed", "at": now, "cleared": token if is_open(doc) else None}),
        answer=answer,
    )


def forget(doc: SmallDocument | Absent, *, before: int) -> Change | None:
    """Remove an alarm that was closed before then; no observation is as old as that."""
    if isinstance(doc, Absent) or doc.body.get("state") != "closed" or doc.body["at"] >= before:
        return None
    return Change(None)


def take_turn(doc: SmallDocument | Absent, *, by: str, every: int, now: int) -> Change | None:
    """Take the turn to look, if it is due.

    One node looks for all of them; if it dies, the next turn comes soon.
    """
    if isinstance(doc, SmallDocument) and 0 <= now - doc.body["at"] < every:
        return None
    return Change(SmallDocument(kind=Kind.ALARM, name=TURN, body={"state": "turn", "at": now, "by": by}), answer=True)
