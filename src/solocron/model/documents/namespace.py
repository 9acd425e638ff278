"""The namespace's own document: whether claims are granted, on which server, and since which check.

A store goes back in time when a lagging replica is promoted or a backup is restored. Nodes that notice it write a new
*epoch* here, and no node claims until every live node has checked what it remembers against the documents. A claim
names the epoch that its node has checked. The store compares it in the claim's own commit, together with the identity
of the server that executes it. The pauses of many jobs at once are here too: a claim names the list of them that its
node has considered, and the same commit compares that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents import scoped_pause
from solocron.model.documents.scoped_pause import Scope, ScopedPause

__all__ = [
    "NAME",
    "Namespace",
    "Openness",
    "begin_check",
    "begin_restoring",
    "close",
    "establish",
    "gate_of",
    "lift_pause",
    "note_doubt",
    "note_pruning",
    "open_again",
    "pause",
    "read",
    "reopen",
]

NAME = "namespace"
"""The name of the one document of kind `namespace`."""


class Openness(StrEnum):
    """States of a namespace: whether claims are granted."""

    OPEN = "open"
    """Claims are granted to nodes that have checked the epoch."""
    CHECKING = "checking"
    """The store may have gone back: live nodes compare what they remember with the documents. Nothing is claimed."""
    CLOSED = "closed"
    """More is lost than the nodes remember. Nothing is claimed until `solocron restored`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """The document as the state machine reads it. `extra` holds keys that other code keeps here."""

    count: int
    """Number of epochs so far. An epoch with a lower number than a known one shows that the store went back."""
    token: str
    identity: str
    """Server for which this epoch was written."""
    openness: Openness = Openness.OPEN
    since: int = 0
    """Store time at which the present check began; 0 in the first epoch."""
    doubt: bool = False
    """True if a node died during the check with claims that no other node remembers."""
    pauses: tuple[ScopedPause, ...] = ()
    """Pauses of many jobs at once that stand, and the latest of those that are over."""
    pruned: int = 0
    """Store time: swept sessions that ended before it may have been removed. Written before the first one is."""
    restoring: str = ""
    """Token of the `solocron restored` that is at work in this closed epoch; empty: none is."""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def epoch(self) -> str:
        return f"{self.count}.{self.token}"

    @property
    def gate(self) -> str:
        """Return the string that a claim compares: state, epoch, server and pauses."""
        return f"{self.openness} {self.epoch} {self.identity} {self.mark}"

    @property
    def mark(self) -> str:
        """Return the part of the gate that stands for the pauses."""
        return scoped_pause.mark_of(self.pauses)

    def note(self) -> SmallDocument:
        body = {
            **self.extra, "count": self.count, "token": self.token, "identity": self.identity,
            "openness": self.openness, "since": self.since, "doubt": self.doubt, "gate": self.gate,
            "pauses": scoped_pause.to_body(self.pauses), "pruned": self.pruned,
        }  # fmt: skip
        if self.restoring:
            body["restoring"] = self.restoring
        return SmallDocument(kind=Kind.NAMESPACE, name=NAME, body=body)


_OWN = frozenset({"count", "token", "identity", "openness", "since", "doubt", "gate", "pauses", "pruned", "restoring"})


def read(doc: object) -> Namespace | None:
    """Return the namespace of a document; None if there is none yet."""
    if not isinstance(doc, SmallDocument):
        return None
    body = doc.body
    return Namespace(
        count=body["count"],
        token=body["token"],
        identity=body["identity"],
        openness=Openness(body["openness"]),
        since=body["since"],
        doubt=body["doubt"],
        pauses=scoped_pause.from_body(body["pauses"]),
        pruned=body["pruned"],
        restoring=body.get("restoring", ""),
        extra={key: value for key, value in body.items() if key not in _OWN},
    )


def gate_of(doc: SmallDocument) -> str | None:
    """Return the string that a claim is compared with; None for every other kind of document."""
    return doc.body.get("gate") if doc.kind is Kind.NAMESPACE else None


def establish(doc: SmallDocument | Absent, *, identity: str, token: str) -> Change:
    """Create the namespace, open, for this server. One that exists is left as it is."""
    if isinstance(doc, SmallDocument):
        return Change(doc, answer=read(doc))
    new = Namespace(count=1, token=token, identity=identity)
    return Change(new.note(), answer=new)


def begin_check(
    doc: SmallDocument | Absent, *, identity: str, known: int, checked: str, token: str, now: int
) -> Change:
    """Write a new epoch in state `checking`; the answer is the namespace as it then is.

    `known` is the highest number of epochs that the node has seen, `checked` the epoch that it has checked itself. If
    another node has begun a check that this node has not taken part in, the node joins it. A closed namespace stays
    closed, even if the store lost what a person did about it.
    """
    found = read(doc)
    if found is not None and found.openness is Openness.CLOSED and found.count < known:
        new = _next(found, known, identity, token, Openness.CLOSED, since=now, doubt=True)
        return Change(new.note(), answer=new)
    if found is not None and found.count >= known:
        if found.openness is Openness.CLOSED:
            here = replace(found, identity=identity)
            return Change(_unchanged(doc) if here == found else here.note(), answer=here)
        joins = found.openness is Openness.CHECKING and found.identity == identity and found.epoch != checked
        if joins:
            return Change(_unchanged(doc), answer=found)
    doubt = found is not None and found.openness is Openness.CHECKING and found.doubt
    new = _next(found, known, identity, token, Openness.CHECKING, since=now, doubt=doubt)
    return Change(new.note(), answer=new)


def close(doc: SmallDocument | Absent, *, identity: str, known: int, token: str, now: int) -> Change:
    """Close the namespace: the loss reaches back beyond what the nodes remember."""
    found = read(doc)
    if found is not None and found.openness is Openness.CLOSED and found.identity == identity:
        return Change(_unchanged(doc), answer=found)
    new = _next(found, known, identity, token, Openness.CLOSED, since=now, doubt=True)
    return Change(new.note(), answer=new)


def note_doubt(doc: SmallDocument | Absent, *, epoch: str) -> Change | None:
    """Record that a session was buried before its node had checked this epoch."""
    found = read(doc)
    if found is None or found.epoch != epoch:
        return None
    if found.doubt or found.openness is not Openness.CHECKING:
        return Change(_unchanged(doc), answer=found)
    new = replace(found, doubt=True)
    return Change(new.note(), answer=new)


def note_pruning(doc: SmallDocument | Absent, *, epoch: str, until: int) -> Change | None:
    """Record that swept sessions that ended before `until` are going to be removed; None in another epoch.

    Nodes differ in how long they keep history. A process that finds a former session of its own missing tells by this
    mark whether a node has removed it or the store went back.
    """
    found = read(doc)
    if found is None or found.epoch != epoch:
        return None
    if found.pruned >= until:
        return Change(_unchanged(doc), answer=found)
    new = replace(found, pruned=until)
    return Change(new.note(), answer=new)


def open_again(doc: SmallDocument | Absent, *, epoch: str, now: int, barrier: int, doubt: bool) -> Change | None:
    """End the check.

    None: another epoch has begun, the barrier still stands, or doubt has come up that the caller did not deal with.
    """
    found = read(doc)
    if found is None or found.epoch != epoch:
        return None
    if found.openness is not Openness.CHECKING:
        return Change(_unchanged(doc), answer=found)
    if now < found.since + barrier or found.doubt != doubt:
        return None
    new = replace(found, openness=Openness.OPEN, doubt=False)
    return Change(new.note(), answer=new)


def begin_restoring(
    doc: SmallDocument | Absent, *, identity: str, token: str, now: int, after: str | None = None
) -> Change | None:
    """Close the namespace for a person's `solocron restored`, and leave its token there.

    With `after`, None unless that token is there: the store has gone back since, or another process has written the
    namespace. An epoch that is closed stays the same, so that the nodes report nothing new.
    """
    found = read(doc)
    if after is not None and (found is None or found.restoring not in (after, token)):
        return None
    if found is None or found.openness is not Openness.CLOSED or found.identity != identity:
        found = _next(found, 0, identity, token, Openness.CLOSED, since=now, doubt=True)
    new = replace(found, restoring=token)
    return Change(new.note(), answer=new)


def reopen(doc: SmallDocument | Absent, *, identity: str, restoring: str, token: str, now: int) -> Change | None:
    """Open a namespace for a person's `solocron restored`: a new epoch, which every node has to check first.

    None unless the token `restoring` is there: what was looked at is not what would be opened.
    """
    found = read(doc)
    if found is not None and found.token == token:
        return Change(_unchanged(doc), answer=found)  # the reply to an earlier try was lost
    if found is None or found.restoring != restoring:
        return None
    new = _next(found, 0, identity, token, Openness.OPEN, since=now, doubt=False)
    return Change(new.note(), answer=new)


def pause(doc: SmallDocument | Absent, *, wanted: ScopedPause, identity: str, token: str, now: int) -> Change | None:
    """Pause the jobs of a scope; the answer is the namespace. None if too many pauses stand.

    The first to write in a namespace creates it.
    """
    found = read(doc) or Namespace(count=1, token=token, identity=identity)
    pauses = scoped_pause.begin(found.pauses, wanted, now=now)
    if pauses is None:
        return None
    new = replace(found, pauses=pauses)
    return Change(new.note(), answer=new)


def lift_pause(
    doc: SmallDocument | Absent, *, scope: Scope, by: str | None, now: int, note: str | None = None
) -> Change | None:
    """End the pause of a scope; the answer is the pause. None if none of that scope stands."""
    found = read(doc)
    lifted = None if found is None else scoped_pause.lift(found.pauses, scope, by=by, now=now, note=note)
    if found is None or lifted is None:
        return None
    pauses, ended = lifted
    return Change(replace(found, pauses=pauses).note(), answer=ended)


def _next(
    found: Namespace | None, known: int, identity: str, token: str, openness: Openness, *, since: int, doubt: bool
) -> Namespace:
    count = max(known, 0 if found is None else found.count) + 1
    return Namespace(
        count=count,
        token=token,
        identity=identity,
        openness=openness,
        since=since,
        doubt=doubt,
        pauses=() if found is None else found.pauses,
        pruned=0 if found is None else found.pruned,
        extra={} if found is None else found.extra,
    )


def _unchanged(doc: SmallDocument | Absent) -> SmallDocument:
    assert isinstance(doc, SmallDocument)
    return doc
