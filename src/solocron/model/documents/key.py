"""An idempotency key's document: who is at work under it, or that it is done, and with which result.

open (a session is at work), done (for ever, or until `expires_at`), uncertain (whoever was at work died in the
middle of it). A key is opened by one only; every later write shows the token of that opening.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from solocron.model.change import Absent, Change, Kind, SmallDocument

__all__ = [
    "Done",
    "Doubt",
    "Opened",
    "Opening",
    "Stand",
    "Working",
    "close",
    "doubt",
    "drop",
    "open_key",
    "orphan",
    "prune",
    "seize",
    "stand_of",
    "tokened",
]  # fmt: skip


class Stand(StrEnum):
    """How far an effect has come."""

    OPEN = "open"
    DONE = "done"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Somebody who wants to begin: `run` and `fence` are those of a run's attempt, None and 0 outside runs."""

    token: str
    session: str
    owner: str
    run: str | None = None
    fence: int = 0


@dataclass(frozen=True, slots=True)
class Opened:
    """It is yours to do."""


@dataclass(frozen=True, slots=True)
class Done:
    """It has been done; the result that was saved, if any."""

    value: Any
    at: int


@dataclass(frozen=True, slots=True)
class Working:
    """Somebody alive, for all the document knows, is at work."""

    owner: str
    session: str
    since: int


@dataclass(frozen=True, slots=True)
class Doubt:
    """Somebody began it and died; `token` names that beginning."""

    owner: str
    token: str
    since: int


def stand_of(doc: SmallDocument) -> Stand:
    return Stand(doc.body["stand"])


def _note(name: str, by: Opening, *, now: int) -> SmallDocument:
    body: dict[str, Any] = {"stand": Stand.OPEN, "token": by.token, "owner": by.owner, "since": now}
    if by.run is not None:
        body |= {"run": by.run, "fence": by.fence}
    return SmallDocument(kind=Kind.KEY, name=name, body=body, session=by.session)


def open_key(doc: SmallDocument | Absent, by: Opening, *, now: int, dead: frozenset[str] = frozenset()) -> Change:
    """Begin, if nobody has; answers `Opened`, `Done`, `Working` or `Doubt`. `dead`: sessions known to be dead.

    A later attempt of the very run that opened it may start only when the earlier one is over: then nobody is at work.
    """
    if isinstance(doc, Absent) or _is_over(doc, now=now):
        return Change(_note(doc.name, by, now=now), answer=Opened())
    body = doc.body
    stand = stand_of(doc)
    if stand is Stand.DONE:
        return Change(doc, answer=Done(body.get("value"), body["at"]))
    if stand is Stand.OPEN and body["token"] == by.token:  # our own request, its answer lost on the way
        return Change(doc, answer=Opened())
    earlier = by.run is not None and body.get("run") == by.run and body["fence"] < by.fence
    if stand is Stand.UNCERTAIN or doc.session in dead or earlier:
        return Change(doc, answer=Doubt(body["owner"], body["token"], body["since"]))
    return Change(doc, answer=Working(body["owner"], doc.session or "", body["since"]))


def _is_over(doc: SmallDocument, *, now: int) -> bool:
    """Whether its time is over; one that a run has made is removed by a sweeper, which looks at the run first."""
    past = doc.expires_at is not None and doc.expires_at <= now
    return past and stand_of(doc) is Stand.DONE and "run" not in doc.body


def tokened(doc: SmallDocument | Absent, token: str) -> SmallDocument | None:
    """The document, if it is open under this very token."""
    if isinstance(doc, Absent) or stand_of(doc) is not Stand.OPEN or doc.body["token"] != token:
        return None
    return doc


def seize(doc: SmallDocument | Absent, by: Opening, *, after: str, now: int) -> Change | None:
    """Begin anew what `after` began and did not end; None when somebody has decided about it meanwhile."""
    if isinstance(doc, SmallDocument) and stand_of(doc) is Stand.OPEN and doc.body["token"] == by.token:
        return Change(doc, answer=Opened())
    if isinstance(doc, Absent) or stand_of(doc) is Stand.DONE or doc.body["token"] != after:
        return None
    return Change(_note(doc.name, by, now=now), answer=Opened())


def close(
    doc: SmallDocument | Absent, *, token: str, now: int, value: Any = None, keep: int | None = None
) -> Change | None:
    """open, or in doubt, to done. None: this token's beginning is not the current one, nothing changes.

    The caller has to be the holder, or to know from the outside world that it happened.
    """
    if isinstance(doc, Absent) or doc.body["token"] != token:
        return None
    if stand_of(doc) is Stand.DONE:  # our own request, its answer lost on the way
        return Change(doc, answer="accepted before")
    body = {name: value for name, value in doc.body.items() if name in ("token", "owner", "since", "run", "fence")}
    body |= {"stand": Stand.DONE, "at": now}
    if value is not None:
        body["value"] = value
    expires_at = None if keep is None else now + keep
    return Change(replace(doc, body=body, session=None, expires_at=expires_at), answer="accepted")


def drop(doc: SmallDocument | Absent, *, token: str, now: int) -> Change | None:
    """The body raised: it did not happen, the key is free."""
    return None if tokened(doc, token) is None else Change(None)


def doubt(doc: SmallDocument | Absent, *, token: str, now: int) -> Change | None:
    """The body was cut off from outside: nobody knows whether it happened."""
    found = tokened(doc, token)
    return None if found is None else Change(_in_doubt(found))


def orphan(doc: SmallDocument | Absent, *, session: str, now: int) -> Change | None:
    """Whoever was at work is dead."""
    return Change(_in_doubt(doc)) if isinstance(doc, SmallDocument) and doc.session == session else None


def _in_doubt(doc: SmallDocument) -> SmallDocument:
    return replace(doc, body={**doc.body, "stand": Stand.UNCERTAIN}, session=None)


def prune(doc: SmallDocument | Absent, *, now: int, unfinished: Mapping[str, object]) -> Change | None:
    """Remove a key whose time is over, unless its run is still waiting or running (`waiting`): a retry must find it."""
    if isinstance(doc, Absent) or doc.expires_at is None or doc.expires_at > now or doc.body.get("run") in unfinished:
        return None
    return Change(None)
