"""One alarm: something should have run and did not, or cannot. A small document, opened and closed by nodes that look.

The node that finds a cause opens the alarm, and the node that finds the cause gone closes it. If several nodes look at
the same time, one of them writes, because the document is compared and swapped. An observation carries the store time
from before it was made, so that an old observation cannot undo a newer one. What is told of alarms is decided for all
of a kind together, in `alarm_message.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from solocron.clock import SECOND
from solocron.model.change import Absent, Change, Kind, SmallDocument

__all__ = [
    "KINDS",
    "TURN",
    "Bounds",
    "Cause",
    "Turn",
    "close",
    "forget",
    "is_open",
    "is_waiting",
    "open_",
    "take_turn",
    "was_open",
]

KINDS = {
    "missed": "slots were not run in time, and catch-up does not run them either",
    "late": "it is due for longer than the bound, and no node has claimed it, or no worker has picked it up",
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
_PAUSE = 3
"""Intervals without a look after which the store must have been away, or every node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Thresholds of the alarms, in microseconds."""

    every: int
    late: int
    failing: int
    patience: int
    """How long a job may be without a node that can run it: a deploy is not an alarm."""
    tier: str | None = None
    missed_latest: bool = False
    """Whether slots that `catch_up="latest"` left out for a later one are told too."""
    settle: int = 60 * SECOND
    """How long a kind must give cause before it is raised, and none before it is cleared."""
    rate: tuple[int, int] = (3, 3_600 * SECOND)
    """How many messages of a kind may be raised in a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Reason for an alarm."""

    kind: str
    subject: str
    detail: str
    patience: int = 0
    ended: int | None = None
    """When the trouble was over, where that was before it could be seen: a miss is found after the outage."""
    info: bool = False
    """Whether it is listed, and not told."""
    owner: str | None = None
    runbook: str | None = None

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.subject}"


def is_open(doc: SmallDocument | Absent) -> bool:
    return isinstance(doc, SmallDocument) and doc.body.get("state") == "open"


def is_waiting(doc: SmallDocument | Absent) -> bool:
    """Return whether there is a cause, but not yet for long enough."""
    return isinstance(doc, SmallDocument) and doc.body.get("state") == "waiting"


def open_(doc: SmallDocument | Absent, cause: Cause, *, seen: int, now: int) -> Change | None:
    """Record a cause observed at `seen`; None if there is nothing to do."""
    if is_open(doc):
        assert isinstance(doc, SmallDocument)
        if doc.body["info"] == cause.info or seen <= doc.body["at"]:
            return None
        body = {**doc.body, "detail": cause.detail, "info": cause.info, "opened": seen, "at": now}
        return Change(replace(doc, body=body))
    since = seen
    if isinstance(doc, SmallDocument):
        if is_waiting(doc):
            since = doc.body["since"]
            if seen - since < cause.patience:
                return None
        elif seen <= doc.body["at"]:
            return None  # the observation is older than the one that closed it
    body = {
        "state": "open" if seen - since >= cause.patience else "waiting", "kind": cause.kind,
        "subject": cause.subject, "detail": cause.detail, "info": cause.info, "since": since, "opened": seen,
        "owner": cause.owner, "runbook": cause.runbook, "at": now,
    }  # fmt: skip
    return Change(SmallDocument(kind=Kind.ALARM, name=doc.name, body=body))


def close(doc: SmallDocument | Absent, *, seen: int, now: int) -> Change | None:
    """Record that the cause was gone at `seen`; None if there is nothing to do."""
    if not (is_open(doc) or is_waiting(doc)):
        return None
    assert isinstance(doc, SmallDocument)
    if seen <= doc.body["at"]:
        return None  # the observation is older than the one that opened it
    body = {**doc.body, "state": "closed", "at": now}
    return Change(replace(doc, body={**body, "passed": True} if is_waiting(doc) else body))


def was_open(doc: SmallDocument | Absent) -> bool:
    """Return whether an alarm is closed that had been open: one that passed while it waited was never an alarm."""
    return isinstance(doc, SmallDocument) and doc.body.get("state") == "closed" and not doc.body.get("passed")


def forget(doc: SmallDocument | Absent, *, before: int) -> Change | None:
    """Remove an alarm that was closed before then; no observation is as old as that."""
    if isinstance(doc, Absent) or doc.body.get("state") != "closed" or doc.body["at"] >= before:
        return None
    return Change(None)


# --- turns -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The turn to look: since when the fleet has looked without a long pause, and how long the last pause was."""

    watched_since: int
    away: int | None
    """Microseconds since the turn before; None if there was none."""


def take_turn(doc: SmallDocument | Absent, *, by: str, every: int, now: int) -> Change | None:
    """Take the turn to look, if it is due; the answer is the `Turn`.

    One node looks for all of them; if it dies, the next turn comes soon. After a long pause, because the store was away
    or no node ran, the fleet has to settle before it tells of anything.
    """
    since, away = now, None
    if isinstance(doc, SmallDocument):
        away = now - doc.body["at"]
        if 0 <= away < every:
            return None
        if 0 <= away <= _PAUSE * every:
            since = doc.body["watched_since"]
    body = {"state": "turn", "at": now, "by": by, "every": every, "watched_since": since}
    return Change(SmallDocument(kind=Kind.ALARM, name=TURN, body=body), answer=Turn(watched_since=since, away=away))
