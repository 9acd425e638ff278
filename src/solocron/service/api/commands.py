"""Commands: trigger, pause, resume, rerun, backfill, cancel, release. Each is audited and can be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from solocron.effects.locks.listing import LockView
from solocron.errors import ConflictError, InvalidError, SolocronError
from solocron.model.change import Kind
from solocron.model.documents.run import job_of
from solocron.service.audit import audited
from solocron.service.call import Answer, ApiCall
from solocron.service.problems import ProblemError
from solocron.service.shown import shown_job
from solocron.views import BackfillView, JobView, SilenceView, to_json

__all__ = [
    *("BulkAnswer", "BulkItem", "CancelAnswer", "LiftAnswer", "RerunAnswer", "TriggerAnswer", "UnblockAnswer"),
    *("backfill", "bulk", "cancel", "lift", "pause", "release", "rerun", "resume", "silence", "trigger", "unblock"),
]

_OVER = {"asked": 202, "cancelled": 200}


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerAnswer:
    """The run that was asked for."""

    run: str
    status: str
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunAnswer:
    """The runs that were asked for."""

    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAnswer:
    """`asked` if a node has to stop it with its next beat, `cancelled` if it was waiting."""

    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkItem:
    """The outcome for one job; `problem` says why nothing was done."""

    job: str
    ok: bool
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAnswer:
    """The outcome for each job."""

    results: tuple[BulkItem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiftAnswer:
    """A silence that has ended."""

    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnblockAnswer:
    """A document that is tried again."""

    kind: str
    name: str


def trigger(call: ApiCall) -> Answer[TriggerAnswer]:
    """Schedule a run now or at an instant; the same key is the same run."""
    job, body = call.names["job"], call.body
    with audited(call, "trigger", job, note=body["note"]) as act:
        view = call.writes.trigger(
            job, body["payload"], at=body["at"], shard=body["shard"], key=call.key, by=call.who, note=body["note"]
        )
        act.after = {"run": view.run}
    href = f"{call.head.base}/api/v1/runs/{quote(view.run, safe='')}"
    return Answer(TriggerAnswer(run=view.run, status=view.status, href=href), 202, (("Location", href),))


def pause(call: ApiCall) -> JobView:
    """Start nothing more of a job by schedule, until it is resumed or until an instant."""
    job, body = call.names["job"], call.body
    before = to_json(call.reads.job(job).paused)
    with audited(call, "pause", job, before=before, note=body["note"]) as act:
        view = call.writes.pause(job, by=call.who, note=body["note"], until=body["until"])
        act.after = to_json(view.paused)
    return shown_job(view)


def resume(call: ApiCall) -> JobView:
    """Resume a job; with `seen` only if it is still the pause that the caller saw."""
    job, seen = call.names["job"], call.body["seen"]
    paused = call.reads.job(job).paused
    with audited(call, "resume", job, before=to_json(paused), note=call.body["note"]):
        if seen is not None and (paused is None or paused.at != seen):
            now = "it is not paused" if paused is None else f"it was paused anew by {paused.by or 'another caller'}"
            raise ConflictError(f"{job}: {now}. Nothing was resumed; look again.")
        view = call.writes.resume(job, by=call.who, note=call.body["note"])
    return shown_job(view)


def rerun(call: ApiCall) -> Answer[RerunAnswer]:
    """Run a slot again, or every slot that failed since an instant."""
    job, body = call.names["job"], call.body
    if (body["slot"] is None) == (body["failed_since"] is None):
        raise InvalidError("give slot or failed_since, one of them. Nothing was asked for.")
    with audited(call, "rerun", job, note=body["note"]) as act:
        runs = call.writes.rerun(
            job, slot=body["slot"], failed_since=body["failed_since"], key=call.key, by=call.who, note=body["note"]
        )
        act.after = {"runs": runs[:100]}
    return Answer(RerunAnswer(runs=tuple(runs)), 202)


def backfill(call: ApiCall) -> Answer[BackfillView]:
    """Run every slot of a range of the past, live slots first."""
    job, body = call.names["job"], call.body
    with audited(call, "backfill", job, note=body["note"]) as act:
        view = call.writes.backfill(
            job, body["start"], body["end"], limit=body["limit"], rate=body["rate"], only=body["only"] or "all",
            key=call.key, by=call.who, note=body["note"],
        )  # fmt: skip
        act.after = {"id": view.id, "total": view.total}
    call.reads.forget_jobs()
    return Answer(view, 202)


def cancel(call: ApiCall) -> Answer[CancelAnswer]:
    """Stop a run, or what is left of a backfill by its id."""
    run, reason = call.names["run"], call.body["reason"]
    with audited(call, "cancel", run, note=reason) as act:
        answer = call.writes.cancel(run, by=call.who, note=reason)
        act.after = {"answer": answer}
        if answer not in _OVER:
            raise ConflictError(f"{run} of {job_of(run)} is over: {answer}. Nothing was cancelled.")
    call.reads.forget_jobs()  # what waits of them is listed with limits and backfills
    return Answer(CancelAnswer(answer=answer), _OVER[answer])


def bulk(call: ApiCall) -> BulkAnswer:
    """Pause or resume many jobs, each for itself."""
    body = call.body
    if body["action"] == "resume" and body["until"] is not None:
        raise InvalidError("until belongs to a pause. Nothing was done.")
    results = []
    for job in body["jobs"]:
        problem = None
        try:
            with audited(call, body["action"], job, note=body["note"]):
                if body["action"] == "pause":
                    call.writes.pause(job, by=call.who, note=body["note"], until=body["until"])
                else:
                    call.writes.resume(job, by=call.who, note=body["note"])
        except SolocronError as error:
            problem = ProblemError(409, str(error)).detail
        results.append(BulkItem(job=job, ok=problem is None, problem=problem))
    return BulkAnswer(results=tuple(results))


def release(call: ApiCall) -> LockView:
    """Take a lock from its holder, if its fence is still the one that the caller saw."""
    name, body = call.names["lock"], call.body
    with audited(call, "release", name, before={"fence": body["fence"]}, note=body["reason"]) as act:
        found = call.writes.lock(name)
        if found.fence != body["fence"]:
            raise ConflictError(
                f"lock {name!r} has fence {found.fence} by now, not {body['fence']}. Nothing was released; look again."
            )
        view = call.writes.release(name, reason=body["reason"], by=call.who)
        act.after = {"fence": view.fence}
    return view


def silence(call: ApiCall) -> SilenceView:
    """Tell nothing of some alarms until an instant; what is wrong is still shown."""
    what, body = call.body["what"], call.body
    with audited(call, "silence", what, note=body["note"]) as act:
        view = call.writes.silence(what, until=body["until"], by=call.who, note=body["note"])
        act.after = {"until": to_json(view.until)}
    return view


def lift(call: ApiCall) -> LiftAnswer:
    """End a silence now; what is still wrong is told."""
    with audited(call, "lift silence", call.body["what"]):
        call.writes.lift_silence(call.body["what"])
    return LiftAnswer(what=call.body["what"])


def unblock(call: ApiCall) -> UnblockAnswer:
    """Let a document that was set aside be tried again."""
    kind, name = call.names["kind"], call.names["document"]
    with audited(call, "unblock", f"{kind} {name}"):
        call.writes.unblock(Kind(kind), name)
    return UnblockAnswer(kind=kind, name=name)
