"""Run now: request a run and claim it in one step, for a caller that carries the body out itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solocron.model.applications import is_anothers
from solocron.model.change import Absent, Change
from solocron.model.documents.job import Job
from solocron.model.documents.run import group_of
from solocron.model.documents.scoped_pause import KeptBack
from solocron.model.refusals import Refusal, Refused
from solocron.model.timetable import Resolve
from solocron.model.transitions.claimant import Claimant
from solocron.model.transitions.claiming import Needs, hold_of, may_start, recompute_due
from solocron.model.transitions.commands import trigger
from solocron.model.transitions.shards import cut

__all__ = ["claim_now"]


def claim_now(
    doc: Job | Absent,
    *,
    request: str,
    payload: Any,
    shard: int | str | None,
    now: int,
    by: Claimant,
    resolve: Resolve,
) -> Change | None:
    """Add a run as `trigger` does, and hold it; the answer is the hold, `Needs` or a `Refusal`. None: not this node's.

    A trigger and a claim after it would not do: another node could claim the run in between. The slots of the job are
    left to the next ordinary claim. The hold is final: the caller is told of its end, and after a crash of the caller
    no other node repeats what was asked for here.
    """
    if isinstance(doc, Absent) or doc.removed or is_anothers(doc.definition, by.application(doc.definition.handler)):
        return None
    ours = next((one for one in doc.active if one.request == request and one.session == by.session), None)
    if ours is not None:  # the reply to an earlier try of this request was lost
        return Change(doc, answer=ours)
    if doc.definition.shards is not None and shard is None:
        return Change(doc, answer=Refusal(Refused.EACH_SHARD))
    asked = trigger(doc, request=request, payload=payload, at=None, now=now, resolve=resolve, shard=shard)
    if asked is None or isinstance(asked.answer, Refusal):
        return asked
    assert isinstance(asked.doc, Job)
    waiting_run = next(one for one in asked.doc.waiting_runs if group_of(one.run) == asked.answer)
    kept = by.kept_back(doc, now)
    if kept is KeptBack.EVERYTHING:
        return Change(doc, answer=Refusal(Refused.PAUSED))
    if waiting_run not in may_start(asked.doc, kept)[0]:
        return Change(doc, answer=Refusal(Refused.BUSY))
    if doc.definition.limit is not None and by.permit is None:
        return Change(doc, answer=Needs(limit=doc.definition.limit))
    hold = replace(hold_of(asked.doc, cut(waiting_run, doc.definition.shards), now=now, by=by), final=True)
    job = replace(
        asked.doc,
        active=(*asked.doc.active, hold),
        waiting_runs=tuple(one for one in asked.doc.waiting_runs if one is not waiting_run),
        fence=hold.fence,
    )
    return Change(recompute_due(job, resolve(job.definition.schedule)), answer=hold)
