"""Documents as JSON and back. Two texts per document: what is rarely written, and how it stands.

Only what differs from a default is written, under short keys, so that a job's state stays under a kilobyte.
Keys that this code does not know are kept as they are, so that older and newer code can share a document.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from json.encoder import c_make_encoder  # type: ignore[attr-defined]
from json.encoder import encode_basestring as _quoted
from typing import Any

from solocron.model._fast.values import from_fields
from solocron.model.change import Kind, SmallDocument
from solocron.model.documents.definition import Definition, canonical
from solocron.model.documents.job import Back, Hold, Job, Last, Missed, Pause, Request, Told, WaitingRange, WaitingRun
from solocron.model.documents.run import Origin, Shards, Status
from solocron.model.documents.session import Life, Session

__all__ = ["decode", "encode", "encode_fixed", "encode_state"]

_SESSION_FIXED = (
    *("node", "host", "pid", "pools", "handlers", "applications", "version"),
    *("fingerprint", "revision", "zone_data", "lease", "keep", "started_at"),
)


def _encoder() -> Callable[[Any], str]:
    """As `JSONEncoder.encode`, which makes the encoder anew for each of our small texts; where there is none, that."""
    plain = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False, check_circular=False)
    try:
        parts = c_make_encoder(None, plain.default, _quoted, None, ":", ",", False, False, False)
        if "".join(parts(_SAMPLE, 0)) == plain.encode(_SAMPLE):
            return lambda value: "".join(parts(value, 0))
    except TypeError:  # an interpreter without the accelerator, or with another one
        pass
    return plain.encode


_SAMPLE = {"a": ['\u2602"', 1, None, True, 1.5, {}]}
_compact = _encoder()
_scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_ORIGINS = {str(origin): origin for origin in Origin}
_STATUSES = {str(status): status for status in Status}
_JOB = Kind.JOB
_STATE = frozenset(["c", "f", "n", "due", "p", "a", "o", "s", "r", "k", "x", "l", "m", "pc", "b"])


def encode(doc: Job | Session | SmallDocument) -> tuple[str, str]:
    """The two texts of a document: fixed part, state."""
    return encode_fixed(doc), encode_state(doc)


def decode(kind: Kind, name: str, fixed: str, state: str) -> Job | Session | SmallDocument:
    """The document of two texts."""
    if kind is _JOB:
        return _job_from(name, fixed, _parsed(state))
    if kind is Kind.SESSION:
        return _session_from(name, json.loads(fixed), json.loads(state))
    body = json.loads(state)
    return SmallDocument(kind=kind, name=name, body=body["body"], session=body.get("s"), expires_at=body.get("x"))


def _parsed(text: str) -> Any:
    """`json.loads` of a text as we write it; one with white space around it takes the long way."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        return json.loads(text)  # which says what is wrong with it
    return value if end == len(text) else json.loads(text)


def encode_fixed(doc: Job | Session | SmallDocument) -> str:
    """What is rarely written: a claim hands on the very definition it read, so stores may compare by identity."""
    if isinstance(doc, Job):
        return _fixed_job(doc)
    if isinstance(doc, Session):
        return canonical({name: getattr(doc, name) for name in _SESSION_FIXED})
    return "{}"


def _fixed_job(job: Job) -> str:
    out: dict[str, Any] = {"d": job.definition.to_json(), "i": job.incarnation}
    if job.revision is not None:
        out["rev"] = job.revision
    if job.source is not None:
        out["src"] = job.source
    if job.zone_data:
        out["tz"] = job.zone_data
    if job.removed:
        out["removed"] = True
    return canonical(out)


def encode_state(doc: Job | Session | SmallDocument) -> str:
    """How it stands."""
    if isinstance(doc, Job):
        return _job_text(doc)
    if isinstance(doc, Session):
        return canonical(
            {"expires_at": doc.expires_at, "beats": doc.beats, "running": doc.running, "state": doc.state}
            | ({"epoch": doc.epoch} if doc.epoch else {})
            | ({"ended_at": doc.ended_at, "reason": doc.reason} if doc.ended_at is not None else {})
        )
    out: dict[str, Any] = {"body": doc.body}
    if doc.session is not None:
        out["s"] = doc.session
    if doc.expires_at is not None:
        out["x"] = doc.expires_at
    return canonical(out)


def _job_text(job: Job) -> str:
    """Put together by hand: every run writes two of them, and an encoder that meets each value by itself costs more."""
    text = f'"c":{job.cursor},"f":{job.fence}'
    if job.nominal is not None:
        text += f',"n":{_quoted(job.nominal)}'
    if job.due_at is not None:
        text += f',"due":{job.due_at}'
    if job.paused is not None:
        pause = job.paused
        text += f',"p":{_compact([pause.at, pause.by, pause.note, pause.until])}'
    if job.active:
        text += f',"a":[{",".join([_hold_text(hold) for hold in job.active])}]'
    if job.waiting_runs:
        text += f',"o":{_compact([_trim(_waiting_run_to(waiting_run)) for waiting_run in job.waiting_runs])}'
    if job.waiting_ranges:
        text += f',"s":{_compact([_trim(_range_to(waiting_range)) for waiting_range in job.waiting_ranges])}'
    if job.requests:
        text += f',"r":{_compact([[request.id, request.answer] for request in job.requests])}'
    if job.accepted:
        text += f',"k":[{",".join(map(str, job.accepted))}]'
    if job.failures:
        text += f',"x":{job.failures}'
    if job.paced:
        text += f',"pc":{job.paced}'
    if job.last is not None:
        text += f',"l":{_last_text(job.last)}'
    if job.missed is not None:
        text += f',"m":{_compact([job.missed.at, job.missed.first, job.missed.last, job.missed.count])}'
    if job.back is not None:
        text += f',"b":{_compact(_back_to(job.back))}'
    return f"{{{_compact(job.extra)[1:-1]},{text}}}" if job.extra else f"{{{text}}}"


def _hold_text(h: Hold) -> str:
    text = (
        f'{_quoted(h.run)},{h.slot},"{h.origin!s}",{h.attempt},{h.tries},{_quoted(h.session)},{_quoted(h.node)},'
        f"{h.fence},{h.claimed_at}"
    )
    if vars(h).keys() <= _USUAL:
        return f"[{text}]" if h.deadline is None else f"[{text},{h.deadline}]"
    rest = [
        h.deadline, h.request, h.payload, h.cancel, h.crashed or None, h.shard, h.shards, h.only, h.among or None,
        h.permit, h.asked_at,
    ]  # fmt: skip
    return f"[{text},{_compact(rest)[1:-1]}]" if _trim(rest) else f"[{text}]"


def _hold_from(v: list[Any]) -> Hold:
    run, slot, origin, attempt, tries, session, node, fence, claimed_at, deadline, *rest = _pad(v, 20)
    request, payload, cancel, crashed, shard, shards, only, among, permit, asked_at = rest
    return Hold(
        run=run, slot=slot, origin=_ORIGINS[origin], attempt=attempt, tries=tries, session=session, node=node,
        fence=fence, claimed_at=claimed_at, deadline=deadline, request=request, payload=payload, cancel=cancel,
        crashed=bool(crashed), shard=shard, shards=_shards(shards), only=only, among=tuple(among or ()), permit=permit,
        asked_at=asked_at,
    )  # fmt: skip


def _waiting_run_to(o: WaitingRun) -> list[Any]:
    return [
        o.run, o.slot, o.origin, o.ready_at, o.attempt, o.tries, o.request, o.payload, o.crashed or None,
        o.shard, o.shards, o.more or None, o.only, o.among or None,
    ]  # fmt: skip


def _waiting_run_from(v: list[Any]) -> WaitingRun:
    run, slot, origin, ready_at, attempt, tries, request, payload, crashed, *rest = _pad(v, 14)
    shard, shards, more, only, among = rest
    return WaitingRun(
        run=run, slot=slot, origin=_ORIGINS[origin], ready_at=ready_at, attempt=attempt, tries=tries,
        request=request, payload=payload, crashed=bool(crashed), shard=shard, shards=_shards(shards), more=more or 0,
        only=only, among=tuple(among or ()),
    )  # fmt: skip


def _shards(value: int | list[str] | None) -> Shards | None:
    return tuple(value) if isinstance(value, list) else value


def _range_to(s: WaitingRange) -> list[Any]:
    return [s.first, s.last, s.count, s.origin, s.request, s.schedule, s.pace, s.total]


def _range_from(v: list[Any]) -> WaitingRange:
    first, last, count, origin, request, schedule, pace, total = _pad(v, 8)
    return WaitingRange(
        first=first, last=last, count=count, origin=_ORIGINS[origin], request=request, schedule=schedule, pace=pace,
        total=total,
    )  # fmt: skip


def _back_to(b: Back) -> list[Any]:
    return [b.epoch, b.fence, b.cursor, [_trim([t.run, t.attempt, t.slot, t.shards]) for t in b.told]]


def _back_from(v: list[Any]) -> Back:
    epoch, fence, cursor, told = v
    return Back(epoch=epoch, fence=fence, cursor=cursor, told=tuple(map(_told_from, told)))


def _told_from(v: list[Any]) -> Told:
    run, attempt, slot, shards = _pad(v, 4)
    return Told(run=run, attempt=attempt, slot=slot, shards=_shards(shards))


_USUAL = {f.name for f in fields(Hold)[:10]}
"""What every hold has, and a deadline: few were given more than these."""


def _trim(values: list[Any]) -> list[Any]:
    """Without the trailing nulls."""
    while values and values[-1] is None:
        values.pop()
    return values


def _pad(values: list[Any], length: int) -> list[Any]:
    """With its trailing nulls again; fields that newer code added are left out."""
    return (values + [None] * (length - len(values)))[:length]


@lru_cache(maxsize=512)  # more than a kilobyte each, and a large fleet's jobs rarely come twice in a row
def _fixed_from(text: str) -> dict[str, Any]:
    value = json.loads(text)
    return {
        "definition": Definition.from_json(value["d"]),
        "incarnation": value["i"],
        "revision": value.get("rev"),
        "source": value.get("src"),
        "zone_data": value.get("tz", ""),
        "removed": value.get("removed", False),
    }


def _job_from(name: str, fixed: str, s: dict[str, Any]) -> Job:
    facts: dict[str, Any] = {**_fixed_from(fixed), "name": name, "cursor": s["c"], "fence": s["f"], "extra": _NOTHING}
    for key, value in s.items():
        read = _READERS.get(key)
        if read is not None:
            facts[read[0]] = read[1](value)
        elif key not in _STATE:
            facts["extra"] = {key: s[key] for key in s.keys() - _STATE}
    return from_fields(Job, facts)


def _last_text(last: Last) -> str:
    text = f'{_quoted(last.run)},{last.slot},{last.attempt},"{last.status!s}",{last.finished_at}'
    error = "null" if last.error is None else _quoted(last.error)
    if last.node is not None:
        return f"[{text},{error},{_quoted(last.node)}]"
    return f"[{text}]" if last.error is None else f"[{text},{error}]"


def _last_from(v: list[Any]) -> Last:
    run, slot, attempt, status, finished_at, error, node = _pad(v, 7)
    return Last(
        run=run, slot=slot, attempt=attempt, status=_STATUSES[status], finished_at=finished_at, error=error, node=node
    )


_NOTHING: dict[str, Any] = {}
_READERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "n": ("nominal", lambda v: v),
    "due": ("due_at", lambda v: v),
    "p": ("paused", lambda v: Pause(at=v[0], by=v[1], note=v[2], until=v[3])),
    "a": ("active", lambda v: tuple(map(_hold_from, v))),
    "o": ("waiting_runs", lambda v: tuple(map(_waiting_run_from, v))),
    "s": ("waiting_ranges", lambda v: tuple(map(_range_from, v))),
    "r": ("requests", lambda v: tuple(Request(id=i, answer=a) for i, a in v)),
    "k": ("accepted", tuple),
    "x": ("failures", lambda v: v),
    "pc": ("paced", lambda v: v),
    "l": ("last", _last_from),
    "b": ("back", _back_from),
    "m": ("missed", lambda v: Missed(at=v[0], first=v[1], last=v[2], count=v[3])),
}
"""How to read what may stand in a job's state; what does not stand there is as the class has it."""


def _session_from(name: str, fixed: dict[str, Any], state: dict[str, Any]) -> Session:
    known = {f.name for f in fields(Session)}
    merged = {key: value for key, value in (fixed | state).items() if key in known}
    merged["pools"] = tuple(merged["pools"])
    if merged.get("handlers") is not None:
        merged["handlers"] = tuple(merged["handlers"])
    merged["applications"] = tuple(
        (name, None if names is None else tuple(names)) for name, names in merged.get("applications", ())
    )
    merged["state"] = Life(merged["state"])
    return Session(name=name, **merged)
