"""A trigger left in the store by a transaction of the user. It becomes a run once a node has read it.

The node that turns it into a run holds it under a live session and removes it afterwards. So it becomes one run,
whatever process freezes or dies in between, and the job is not locked while the user's transaction is open.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from solocron.model._fast.values import replace
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents.job import Job, WaitingRun
from solocron.model.documents.run import Origin, Record, Status, job_of, run_id
from solocron.model.refusals import Refusal, Refused
from solocron.model.timetable import Resolve
from solocron.model.transitions.catchup import did_not_run
from solocron.model.transitions.commands import remember, trigger

__all__ = [
    *("accept", "by_job", "first_name", "hold", "is_of", "job_named", "leave"),
    *("may_be_known", "orphan", "run_named", "taken_in"),
]

_RECORDED = {
    Refused.DISABLED: (Status.SKIPPED, "the job is disabled"),
    Refused.NO_SHARD: (Status.SKIPPED, "the job has no such shard any more"),
    Refused.QUEUE_FULL: (Status.DROPPED, "too many runs of the job wait already"),
}


def leave(
    *,
    run: str,
    request: str,
    payload: Any,
    at: int | None,
    keyed: bool,
    asked: tuple[int, int],
    token: str,
    shard: int | str | None = None,
    by: str | None = None,
    note: str | None = None,
) -> SmallDocument:
    """Return the document to be written with the user's transaction.

    `asked` only orders the requests of one program.
    """
    body: dict[str, Any] = {"run": run, "request": request, "asked": list(asked)}
    if payload is not None:
        body["payload"] = payload
    if at is not None:
        body["at"] = at
    if shard is not None:
        body["shard"] = shard
    if keyed:
        body["keyed"] = True
    if by is not None:
        body["by"] = by
    if note is not None:
        body["note"] = note
    return SmallDocument(kind=Kind.REQUEST, name=f"{first_name(run)}{token}", body=body)


def first_name(run: str) -> str:
    """Return the prefix of the names of all requests for a run: two transactions may request the same one at once."""
    return hashlib.blake2b(run.encode(), digest_size=8).hexdigest() + "-"


def run_named(note: SmallDocument) -> str:
    """Return the id of the requested run."""
    return str(note.body["run"])


def job_named(note: SmallDocument) -> str:
    """Return the name of the requested run's job."""
    return job_of(run_named(note))


def by_job(notes: Iterable[SmallDocument]) -> dict[str, list[SmallDocument]]:
    """Return the requests by the names of their jobs."""
    found: dict[str, list[SmallDocument]] = {}
    for note in notes:
        found.setdefault(job_named(note), []).append(note)
    return found


def is_of(note: SmallDocument, job: Job) -> bool:
    """Return whether it was requested of this job, not of an earlier one of the same name."""
    return run_named(note) == run_id(job.name, job.incarnation, Origin.TRIGGER, note.body["request"])


def hold(doc: SmallDocument | Absent, *, session: str) -> Change | None:
    """Hold the request; None if it is gone or held by another node."""
    if isinstance(doc, Absent) or doc.session not in (None, session):
        return None
    return Change(replace(doc, session=session, body={**doc.body, "times": doc.body.get("times", 0) + 1}))


def orphan(doc: SmallDocument | Absent, *, session: str, now: int) -> Change | None:
    """Release a request held by a dead session. The next node must check whether its run was already created."""
    if isinstance(doc, Absent) or doc.session != session:
        return None
    return Change(replace(doc, session=None))


def may_be_known(note: SmallDocument) -> bool:
    """Return whether its run may exist already: another node held it, or another request has the same key."""
    return bool(note.body.get("keyed")) or note.body.get("times", 0) != 1


def accept(doc: Job | Absent, *, left: Sequence[SmallDocument], now: int, resolve: Resolve) -> Change | None:
    """Add the requested runs as waiting runs, in the order of the requests; None if the job no longer exists.

    No caller waits for a reply, so a refusal is recorded in the log instead.
    """
    if isinstance(doc, Absent) or doc.removed:
        return None
    job, records, seen = doc, list[Record](), set[str]()
    for note in sorted(left, key=lambda note: note.body["asked"]):
        run, request, payload = run_named(note), note.body["request"], note.body.get("payload")
        if run in seen or not is_of(note, doc):
            continue  # the same key twice, or an earlier job of this name
        seen.add(run)
        at, shard, by, why = (note.body.get(name) for name in ("at", "shard", "by", "note"))
        change = trigger(
            job, request=request, payload=payload, at=at, now=now, resolve=resolve, shard=shard, by=by, note=why
        )
        assert change is not None
        assert isinstance(change.doc, Job)
        job = change.doc
        if isinstance(change.answer, Refusal):
            waiting_run = WaitingRun(
                run=run, slot=now, origin=Origin.TRIGGER, ready_at=now, request=request, payload=payload,
                asked_by=by, note=why,
            )  # fmt: skip
            records.append(did_not_run(job, waiting_run, *_RECORDED[change.answer.reason], now=now))
            job = remember(job, request, run)
    return Change(job, tuple(records))


def taken_in(doc: SmallDocument | Absent, *, session: str) -> Change | None:
    """Remove a request whose run exists."""
    return Change(None) if isinstance(doc, SmallDocument) and doc.session == session else None
