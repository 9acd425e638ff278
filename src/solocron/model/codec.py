"""Documents as JSON and back. Two texts per document: what is rarely written, and how it stands.

Only what differs from a default is written, under short keys, so that a job's state stays under a kilobyte.
Keys that this code does not know are kept as they are, so that older and newer code can share a document.
"""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Any

from solocron.model._fast.json_text import read, write, write_sorted
from solocron.model._fast.values import build, replace
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import (
    Back,
    Hold,
    Job,
    Last,
    Missed,
    Pause,
    Request,
    Resume,
    Told,
    WaitingRange,
    WaitingRun,
)
from solocron.model.documents.offer import Offer
from solocron.model.documents.run import Origin, Shards, Status
from solocron.model.documents.session import NO_REPORT, Life, RefusedEnd, SelfReport, Session

__all__ = ["decode", "encode", "encode_fixed", "encode_state"]

_SESSION_FIXED = (
    *("node", "host", "pid", "pools", "handlers", "applications", "version"),
    *("fingerprint", "revision", "zone_data", "lease", "keep", "max_running", "features", "started_at"),
)
_SESSION = frozenset(field.name for field in fields(Session))
_ORIGINS = {str(origin): origin for origin in Origin}
_STATUSES = {str(status): status for status in Status}
_USUAL = frozenset(("c", "f", "n", "due", "a", "k", "l"))
_STATE = _USUAL | {"p", "o", "s", "r", "x", "pc", "m", "b"}
"""The keys of a job's state. Those of newer code are kept in `Job.extra`."""


def encode(doc: Job | Session | SmallDocument) -> tuple[str, str]:
    """Return the two texts of a document: fixed part, state."""
    return encode_fixed(doc), encode_state(doc)


def decode(kind: Kind, name: str, fixed: str, state: str) -> Job | Session | SmallDocument:
    """Return the document of two texts."""
    if kind is Kind.JOB:
        return _job(name, fixed, read(state))
    if kind is Kind.SESSION:
        return _session(name, read(fixed) | read(state))
    value = read(state)
    return SmallDocument(kind=kind, name=name, body=value["body"], session=value.get("s"), expires_at=value.get("x"))


def encode_fixed(doc: Job | Session | SmallDocument) -> str:
    """Return what is rarely written. A claim hands on the very definition it read: stores may compare by identity."""
    if isinstance(doc, Job):
        return write_sorted(_fixed_of(doc))
    if isinstance(doc, Session):
        return write_sorted({name: getattr(doc, name) for name in _SESSION_FIXED})
    return "{}"


def encode_state(doc: Job | Session | SmallDocument) -> str:
    """Return how the document stands."""
    if isinstance(doc, Job):
        return write(_state_of(doc))
    if isinstance(doc, Session):
        return write_sorted(
            {"expires_at": doc.expires_at, "beats": doc.beats, "running": doc.running, "state": doc.state}
            | ({"progress": doc.progress} if doc.progress else {})
            | ({"epoch": doc.epoch} if doc.epoch else {})
            | ({} if doc.report == NO_REPORT else {"report": _report_to(doc.report)})
            | ({"ended_at": doc.ended_at, "reason": doc.reason} if doc.ended_at is not None else {})
            | ({} if doc.buried_by is None else {"buried_by": doc.buried_by})
        )
    out: dict[str, Any] = {"body": doc.body}
    if doc.session is not None:
        out["s"] = doc.session
    if doc.expires_at is not None:
        out["x"] = doc.expires_at
    return write_sorted(out)


# --- a job


_NO_AUTHOR = (None, None)


def _fixed_of(job: Job) -> dict[str, Any]:
    out: dict[str, Any] = {"d": job.definition.to_json(), "i": job.incarnation}
    if job.revision is not None:
        out["rev"] = job.revision
    if job.source is not None:
        out["src"] = job.source
    if job.zone_data:
        out["tz"] = job.zone_data
    if job.place is not None:
        out["at"] = job.place
    if job.defined_at is not None:
        out["def"] = job.defined_at
    if job.defined_by is not None or job.defined_note is not None:
        out["by"] = [job.defined_by, job.defined_note]
    if job.resumed is not None:
        out["res"] = [job.resumed.at, job.resumed.by, job.resumed.note]
    if job.removed:
        out["removed"] = True
    return out


@lru_cache(maxsize=512)  # more than a kilobyte each, and a large fleet's jobs rarely come twice in a row
def _fixed(text: str) -> Job:
    """Return a job of these fixed facts, without a name or a state of its own."""
    value = read(text)
    resumed = value.get("res")
    return Job(
        name="",
        cursor=0,
        definition=Definition.from_json(value["d"]),
        incarnation=value["i"],
        revision=value.get("rev"),
        source=value.get("src"),
        zone_data=value.get("tz", ""),
        place=value.get("at"),
        defined_at=value.get("def"),
        defined_by=value.get("by", _NO_AUTHOR)[0],
        defined_note=value.get("by", _NO_AUTHOR)[1],
        resumed=None if resumed is None else Resume(at=resumed[0], by=resumed[1], note=resumed[2]),
        removed=value.get("removed", False),
        extra={},
    )


def _state_of(job: Job) -> dict[str, Any]:
    out: dict[str, Any] = {**job.extra, "c": job.cursor, "f": job.fence}
    if job.nominal is not None:
        out["n"] = job.nominal
    if job.due_at is not None:
        out["due"] = job.due_at
    if job.paused is not None:
        out["p"] = [job.paused.at, job.paused.by, job.paused.note, job.paused.until]
    if job.active:
        out["a"] = [_hold_to(hold) for hold in job.active]
    if job.waiting_runs:
        out["o"] = [_waiting_run_to(waiting_run) for waiting_run in job.waiting_runs]
    if job.waiting_ranges:
        out["s"] = [_range_to(waiting_range) for waiting_range in job.waiting_ranges]
    if job.requests:
        out["r"] = [[request.id, request.answer] for request in job.requests]
    if job.accepted:
        out["k"] = job.accepted
    if job.failures:
        out["x"] = job.failures
    if job.paced:
        out["pc"] = job.paced
    if job.last is not None:
        out["l"] = _last_to(job.last)
    if job.missed is not None:
        out["m"] = _missed_to(job.missed)
    if job.back is not None:
        out["b"] = _back_to(job.back)
    return out


def _job(name: str, fixed: str, s: dict[str, Any]) -> Job:
    get = s.get
    active, accepted, last = get("a"), get("k"), get("l")
    job = replace(
        _fixed(fixed),
        name=name,
        cursor=s["c"],
        fence=s["f"],
        nominal=get("n"),
        due_at=get("due"),
        active=() if active is None else tuple([_hold(*hold) for hold in active]),
        accepted=() if accepted is None else tuple(accepted),
        last=None if last is None else _last(*last),
    )
    return job if s.keys() <= _USUAL else _unusual(job, s)


def _unusual(job: Job, s: dict[str, Any]) -> Job:
    """Return the job with what few states have, at any time."""
    paused, missed, back = s.get("p"), s.get("m"), s.get("b")
    return replace(
        job,
        paused=None if paused is None else _pause(*paused),
        waiting_runs=tuple(_waiting_run(*waiting_run) for waiting_run in s.get("o", ())),
        waiting_ranges=tuple(_range(*waiting_range) for waiting_range in s.get("s", ())),
        requests=tuple(Request(id=id_, answer=answer) for id_, answer in s.get("r", ())),
        failures=s.get("x", 0),
        paced=s.get("pc", 0),
        missed=None if missed is None else _missed(*missed),
        back=None if back is None else _back(*back),
        extra={key: s[key] for key in s.keys() - _STATE},
    )


# --- the parts of a job's state: arrays without their trailing nulls, which newer code may have made longer


_NOTHING = [None] * 15


def _trim(values: list[Any]) -> list[Any]:
    while values and values[-1] is None:
        values.pop()
    return values


def _hold_to(h: Hold) -> list[Any]:
    usual = [h.run, h.slot, h.origin, h.attempt, h.tries, h.session, h.node, h.fence, h.claimed_at, h.deadline]
    rest = [
        h.request, h.payload, h.cancel, h.crashed or None, h.shard, h.shards, h.only, h.among or None, h.permit,
        h.asked_at, h.final or None, h.asked_by, h.note, _offer_to(h.offer), h.trace,
    ]  # fmt: skip
    return _trim(usual) if rest == _NOTHING else _trim(usual + rest)


def _hold(
    run: str, slot: int, origin: str, attempt: int, tries: int, session: str, node: str, fence: int, claimed_at: int,
    deadline: int | None = None, *more: Any,
) -> Hold:  # fmt: skip
    hold = build(
        Hold, run=run, slot=slot, origin=_ORIGINS[origin], attempt=attempt, tries=tries, session=session, node=node,
        fence=fence, claimed_at=claimed_at, deadline=deadline,
    )  # fmt: skip
    return _with_more(hold, *more) if more else hold


def _with_more(
    hold: Hold, request: str | None, payload: Any = None, cancel: str | None = None, crashed: bool | None = None,
    shard: int | str | None = None, shards: int | list[str] | None = None, only: str | None = None,
    among: list[str] | None = None, permit: str | None = None, asked_at: int | None = None,
    final: bool | None = None, asked_by: str | None = None, note: str | None = None,
    offer: list[Any] | None = None, trace: str | None = None, *_: Any,
) -> Hold:  # fmt: skip
    return replace(
        hold, request=request, payload=payload, cancel=cancel, crashed=bool(crashed), shard=shard,
        shards=_shards(shards), only=only, among=tuple(among or ()), permit=permit, asked_at=asked_at,
        final=bool(final), asked_by=asked_by, note=note, offer=None if offer is None else _offer(*offer), trace=trace,
    )  # fmt: skip


def _waiting_run_to(o: WaitingRun) -> list[Any]:
    return _trim([
        o.run, o.slot, o.origin, o.ready_at, o.attempt, o.tries, o.request, o.payload, o.crashed or None,
        o.shard, o.shards, o.more or None, o.only, o.among or None, o.asked_by, o.note, _offer_to(o.offer),
        o.trace,
    ])  # fmt: skip


def _waiting_run(
    run: str, slot: int, origin: str, ready_at: int, attempt: int, tries: int, request: str | None = None,
    payload: Any = None, crashed: bool | None = None, shard: int | str | None = None,
    shards: int | list[str] | None = None, more: int | None = None, only: str | None = None,
    among: list[str] | None = None, asked_by: str | None = None, note: str | None = None,
    offer: list[Any] | None = None, trace: str | None = None, *_: Any,
) -> WaitingRun:  # fmt: skip
    return WaitingRun(
        run=run, slot=slot, origin=_ORIGINS[origin], ready_at=ready_at, attempt=attempt, tries=tries,
        request=request, payload=payload, crashed=bool(crashed), shard=shard, shards=_shards(shards), more=more or 0,
        only=only, among=tuple(among or ()), asked_by=asked_by, note=note,
        offer=None if offer is None else _offer(*offer), trace=trace,
    )  # fmt: skip


def _offer_to(o: Offer | None) -> list[Any] | None:
    return None if o is None else _trim([o.carrier, o.since, o.tries, o.until, None if o.follows else False, o.note])


def _offer(
    carrier: str, since: int, tries: int, until: int | None = None, follows: bool | None = None,
    note: str | None = None, *_: Any,
) -> Offer:  # fmt: skip
    return Offer(carrier=carrier, since=since, tries=tries, until=until, follows=follows is not False, note=note)


def _shards(value: int | list[str] | None) -> Shards | None:
    return tuple(value) if isinstance(value, list) else value


def _range_to(s: WaitingRange) -> list[Any]:
    origin = [s.asked_by, s.note, s.trace]
    return _trim([s.first, s.last, s.count, s.origin, s.request, s.schedule, s.pace, s.total, *origin])


def _range(
    first: int, last: int, count: int, origin: str, request: str | None = None,
    schedule: dict[str, Any] | None = None, pace: int | None = None, total: int | None = None,
    asked_by: str | None = None, note: str | None = None, trace: str | None = None, *_: Any,
) -> WaitingRange:  # fmt: skip
    return WaitingRange(
        first=first, last=last, count=count, origin=_ORIGINS[origin], request=request, schedule=schedule, pace=pace,
        total=total, asked_by=asked_by, note=note, trace=trace,
    )  # fmt: skip


def _last_to(o: Last) -> list[Any]:
    return _trim([o.run, o.slot, o.attempt, o.status, o.finished_at, o.error, o.node])


def _last(
    run: str, slot: int, attempt: int, status: str, finished_at: int, error: str | None = None,
    node: str | None = None, *_: Any,
) -> Last:  # fmt: skip
    return build(
        Last,
        run=run,
        slot=slot,
        attempt=attempt,
        status=_STATUSES[status],
        finished_at=finished_at,
        error=error,
        node=node,
    )


def _pause(at: int, by: str | None, note: str | None, until: int | None, *_: Any) -> Pause:
    return Pause(at=at, by=by, note=note, until=until)


def _missed_to(m: Missed) -> list[Any]:
    return [m.at, m.first, m.last, m.count, *([True] if m.superseded else [])]


def _missed(at: int, first: int, last: int, count: int, superseded: bool = False, *_: Any) -> Missed:
    return Missed(at=at, first=first, last=last, count=count, superseded=superseded)


def _back_to(b: Back) -> list[Any]:
    return [b.epoch, b.fence, b.cursor, [_trim([t.run, t.attempt, t.slot, t.shards]) for t in b.told]]


def _back(epoch: str, fence: int, cursor: int, told: list[list[Any]], *_: Any) -> Back:
    return Back(epoch=epoch, fence=fence, cursor=cursor, told=tuple([_told(*one) for one in told]))


def _told(run: str, attempt: int, slot: int, shards: int | list[str] | None = None, *_: Any) -> Told:
    return Told(run=run, attempt=attempt, slot=slot, shards=_shards(shards))


# --- a session


def _session(name: str, value: dict[str, Any]) -> Session:
    facts = {key: value[key] for key in value.keys() & _SESSION}
    facts["pools"] = tuple(facts["pools"])
    if facts.get("handlers") is not None:
        facts["handlers"] = tuple(facts["handlers"])
    facts["applications"] = tuple(
        (name, None if names is None else tuple(names)) for name, names in facts.get("applications", ())
    )
    facts["report"] = _report(facts["report"]) if "report" in facts else NO_REPORT
    facts["progress"] = tuple((run, fence, text) for run, fence, text in facts.get("progress", ()))
    facts["features"] = tuple(facts.get("features", ()))
    facts["state"] = Life(facts["state"])
    return Session(name=name, **facts)


def _report_to(report: SelfReport) -> list[Any]:
    refused = [[one.run, one.fence, one.at, one.outcome] for one in report.refused]
    return [report.skew, report.late_by, report.late_at, refused]


def _report(value: list[Any]) -> SelfReport:
    skew, late_by, late_at, refused = value
    ends = (RefusedEnd(run=run, fence=fence, at=at, outcome=outcome) for run, fence, at, outcome in refused)
    return SelfReport(skew=skew, late_by=late_by, late_at=late_at, refused=tuple(ends))
