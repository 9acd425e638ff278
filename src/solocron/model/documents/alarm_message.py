"""The messages about a kind of alarm: an outage of any size is raised once and cleared once, by one node.

Each kind has a document. It goes from *quiet* to *pending* when there is something to tell, from pending to *raised*
when that has lasted for the settling time, and back to quiet when all of it has been gone for as long. The node whose
write makes the step tells of it. Nodes look at different times and die at any; the document is compared and swapped, so
each step is made once.

What to tell is what has begun since the last message: an alarm that is found late and belongs to the outage that was
told is listed, not told again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents.alarm import Bounds

__all__ = [
    "AlarmMessage",
    "Delivery",
    "Finding",
    "MessagePhase",
    "MessageStep",
    "OpenAlarm",
    "decide",
    "document_of",
    "read",
    "record_delivery",
]

_PREFIX = ".message:"
_PUT_OFF = 3
"""How often a pause in looking begins the settling anew: nodes that crash in turns must not prevent a message."""
_SUCH_AS = 3
"""Names of alarms that a message gives as examples when it is cleared."""


class MessagePhase(StrEnum):
    """What was told of a kind."""

    QUIET = "quiet"
    """Nothing, or that it is over."""
    PENDING = "pending"
    """There is something to tell, and it is given time to pass."""
    RAISED = "raised"
    """A message was sent, and not all of it is gone."""


class MessageStep(StrEnum):
    """What a message says."""

    RAISED = "raised"
    AGAIN = "raised again"
    """It goes on: more has begun since the last message, or that one may not have arrived."""
    CLEARED = "cleared"


class Delivery(StrEnum):
    """What became of the last message."""

    UNKNOWN = "unknown"
    """Its node is still sending it, or died before it knew."""
    DONE = "done"
    """Every target has accepted it."""
    REFUSED = "refused"
    """A target has certainly not accepted it."""
    DOUBTFUL = "doubtful"
    """A target has not replied in time: it may have accepted it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAlarm:
    """An open alarm that is to be told: neither silenced nor mere information."""

    subject: str
    detail: str
    since: int
    began: int
    """When it was opened; of a miss, which is found after the outage, the last slot that was missed."""
    owner: str | None = None
    runbook: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one look has found of a kind."""

    seen: int
    """Store time from before the look."""
    watched_since: int
    """Store time since which the fleet has looked without a long pause."""
    members: Sequence[OpenAlarm] = ()
    hidden: Sequence[OpenAlarm] = ()
    """Open alarms of this kind that are silenced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmMessage:
    """The document of a kind."""

    phase: MessagePhase = MessagePhase.QUIET
    at: int = 0
    """Time of the last write."""
    since: int = 0
    """When the settling began; of a raised message, since when there has been trouble."""
    put_off: int = 0
    raised: tuple[int, ...] = ()
    """Times of the latest messages that were raised, oldest first."""
    gone: int | None = None
    """Since when a raised message has no alarm left."""
    hushed: bool = False
    """Whether a silence ended the last one: what is left when the silence ends is told."""
    count: int = 0
    such_as: tuple[str, ...] = ()
    step: MessageStep | None = None
    """What was told last."""
    token: str = ""
    """Made by the node that told last, so that it recognises its own write when the reply is lost."""
    by: str = ""
    delivery: Delivery = Delivery.UNKNOWN


def document_of(kind: str) -> str:
    """Return the name of the document of a kind."""
    return f"{_PREFIX}{kind}"


def read(doc: SmallDocument | Absent) -> AlarmMessage:
    """Return what the document says; of one that does not exist, that nothing was told."""
    if isinstance(doc, Absent):
        return AlarmMessage()
    body = doc.body
    return AlarmMessage(
        phase=MessagePhase(body["phase"]), at=body["at"], since=body["since"], put_off=body["put_off"],
        raised=tuple(body["raised"]), gone=body["gone"], hushed=body["hushed"], count=body["count"],
        such_as=tuple(body["such_as"]), step=None if body["step"] is None else MessageStep(body["step"]),
        token=body["token"], by=body["by"], delivery=Delivery(body["delivery"]),
    )  # fmt: skip


def decide(
    doc: SmallDocument | Absent, finding: Finding, *, bounds: Bounds, now: int, token: str, by: str
) -> Change | None:
    """Take the next step of a kind; None if there is none. The answer is the `MessageStep` to tell, or None."""
    old = read(doc)
    if finding.seen <= old.at:
        return None  # the look is older than the last step
    if old.phase is MessagePhase.RAISED:
        new, step = _while_raised(old, finding, bounds)
    else:
        new, step = _while_untold(old, finding, bounds)
    if new == old:
        return None
    if step is not None:
        new = replace(new, step=step, token=token, by=by, delivery=Delivery.UNKNOWN)
    return _written(doc, replace(new, at=now), step)


def record_delivery(doc: SmallDocument | Absent, delivery: Delivery, *, token: str) -> Change | None:
    """Record what became of a message; None if another one was sent since."""
    old = read(doc)
    if old.token != token or old.delivery is delivery:
        return None
    return _written(doc, replace(old, delivery=delivery), None)


def _while_untold(old: AlarmMessage, finding: Finding, bounds: Bounds) -> tuple[AlarmMessage, MessageStep | None]:
    if not _news(old, finding, bounds):
        return (old if old.phase is MessagePhase.QUIET else replace(old, phase=MessagePhase.QUIET, put_off=0)), None
    if old.phase is MessagePhase.QUIET:
        new = replace(old, phase=MessagePhase.PENDING, since=finding.seen, put_off=0)
    elif finding.watched_since > old.since and old.put_off < _PUT_OFF:
        new = replace(old, since=finding.watched_since, put_off=old.put_off + 1)
    else:
        new = old
    if finding.seen - new.since < bounds.settle or _is_often(old, finding, bounds):
        return new, None
    return _raised(new, finding, bounds), MessageStep.RAISED


def _while_raised(old: AlarmMessage, finding: Finding, bounds: Bounds) -> tuple[AlarmMessage, MessageStep | None]:
    if not finding.members:
        if any(one.began <= old.raised[-1] for one in finding.hidden):
            return replace(old, phase=MessagePhase.QUIET, gone=None, hushed=True), None
        gone = max(finding.seen if old.gone is None else old.gone, finding.watched_since)
        if finding.seen - gone < bounds.settle:
            return replace(old, gone=gone), None
        return replace(old, phase=MessagePhase.QUIET, gone=None), MessageStep.CLEARED
    most, period = bounds.rate
    ago = finding.seen - old.raised[-1]
    settled = any(finding.seen - member.since >= bounds.settle for member in _begun_since(old, finding))
    undelivered = ago >= (period // most if old.delivery is Delivery.REFUSED else period)
    wanted = (settled and ago >= period) or (old.delivery is not Delivery.DONE and undelivered)
    if wanted and not _is_often(old, finding, bounds):
        return _raised(old, finding, bounds), MessageStep.AGAIN
    return replace(old, gone=None, count=max(old.count, len(finding.members))), None


def _is_often(old: AlarmMessage, finding: Finding, bounds: Bounds) -> bool:
    """Return whether as many messages as may were raised lately."""
    most, period = bounds.rate
    return sum(finding.seen - at < period for at in old.raised) >= most


def _news(old: AlarmMessage, finding: Finding, bounds: Bounds) -> Sequence[OpenAlarm]:
    """Return what a message that is not raised has to tell.

    Trouble from before the last message belongs to the outage that was told. That counts for a while only: whatever is
    still there afterwards is told.
    """
    if not old.raised or old.hushed or finding.seen - old.raised[-1] >= bounds.rate[1]:
        return finding.members
    return _begun_since(old, finding)


def _begun_since(old: AlarmMessage, finding: Finding) -> Sequence[OpenAlarm]:
    return [member for member in finding.members if member.began > old.raised[-1]]


def _raised(old: AlarmMessage, finding: Finding, bounds: Bounds) -> AlarmMessage:
    recent = [at for at in old.raised if finding.seen - at < bounds.rate[1]]
    return replace(
        old,
        phase=MessagePhase.RAISED,
        since=min(member.since for member in finding.members),
        put_off=0,
        raised=(*recent, finding.seen),
        gone=None,
        hushed=False,
        count=len(finding.members),
        such_as=tuple(member.subject for member in finding.members[:_SUCH_AS]),
    )


def _written(doc: SmallDocument | Absent, message: AlarmMessage, answer: Any) -> Change:
    body = {"state": "message", **asdict(message)}
    body |= {"raised": list(message.raised), "such_as": list(message.such_as)}
    return Change(SmallDocument(kind=Kind.ALARM, name=doc.name, body=body), answer=answer)
