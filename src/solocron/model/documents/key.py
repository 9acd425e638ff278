"""An idempotency key's document: open, done or uncertain, with the holder or the result.

Open: a session is at work. Done: forever, or until `expires_at`. Uncertain: the holder died while at work. One caller
opens a key; every later write shows the token of that opening.
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
    """States of an effect."""

    OPEN = "open"
    DONE = "done"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A request to begin: `run` and `fence` are those of a run's attempt, None and 0 outside runs."""

    token: str
    session: str
    owner: str
    run: str | None = None
    fence: int = 0


@dataclass(frozen=True, slots=True)
class Opened:
    """The caller has the key and performs the effect."""


@dataclass(frozen=True, slots=True)
class Done:
    """The effect is done; carries the saved result, if any."""

    value: Any
    at: int


@dataclass(frozen=True, slots=True)
class Working:
    """A session that is not known to be dead is at work."""

    owner: str
    session: str
    since: int


@dataclass(frozen=True, slots=True)
class Doubt:
    """A session began it and died; `token` names that beginning."""

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
    """Begin if the key is free. The answer is `Opened`, `Done`, `Working` or `Doubt`.

    `dead`: sessions known to be dead. A later attempt of the run that opened the key starts only after the earlier one
    has ended, so it finds the work of that attempt abandoned and not in progress.
    """
    if isinstance(doc, Absent) or _is_over(doc, now=now):
        return Change(_note(doc.name, by, now=now), answer=Opened())
    body = doc.body
    stand = stand_of(doc)
    if stand is Stand.DONE:
        return Change(doc, answer=Done(body.get("value"), body["at"]))
    if stand is Stand.OPEN and body["token"] == by.token:  # our own request, whose reply was lost
        return Change(doc, answer=Opened())
    earlier = by.run is not None and body.get("run") == by.run and body["fence"] < by.fence
    if stand is Stand.UNCERTAIN or doc.session in dead or earlier:
        return Change(doc, answer=Doubt(body["owner"], body["token"], body["since"]))
    return Change(doc, answer=Working(body["owner"], doc.session or "", body["since"]))


def _is_over(doc: SmallDocument, *, now: int) -> bool:
    """Return whether its retention has passed.

    A sweeper removes a key made by a run, after it has looked at the run.
    """
    past = doc.expires_at is not None and doc.expires_at <= now
    return past and stand_of(doc) is Stand.DONE and "run" not in doc.body


def tokened(doc: SmallDocument | Absent, token: str) -> SmallDocument | None:
    """Return the document if it is open under this token."""
    if isinstance(doc, Absent) or stand_of(doc) is not Stand.OPEN or doc.body["token"] != token:
        return None
    return doc


def seize(doc: SmallDocument | Absent, by: Opening, *, after: str, now: int) -> Change | None:
    """Begin anew what `after` began and did not end; None if another caller has decided about it meanwhile."""
    if isinstance(doc, SmallDocument) and stand_of(doc) is Stand.OPEN and doc.body["token"] == by.token:
        return Change(doc, answer=Opened())
    if isinstance(doc, Absent) or stand_of(doc) is Stand.DONE or doc.body["token"] != after:
        return None
    return Change(_note(doc.name, by, now=now), answer=Opened())


def close(
    doc: SmallDocument | Absent, *, token: str, now: int, value: Any = None, keep: int | None = None
) -> Change | None:
    """Mark an open or uncertain key as done; None if this token's beginning is not the current one.

    The caller must be the holder, or must know from the outside world that the effect happened.
    """
    if isinstance(doc, Absent) or doc.body["token"] != token:
        return None
    if stand_of(doc) is Stand.DONE:  # our own request, whose reply was lost
        return Change(doc, answer="accepted before")
    body = {name: value for name, value in doc.body.items() if name in ("token", "owner", "since", "run", "fence")}
    body |= {"stand": Stand.DONE, "at": now}
    if value is not None:
        body["value"] = value
    expires_at = None if keep is None else now + keep
    return Change(replace(doc, body=body, session=None, expires_at=expires_at), answer="accepted")


def drop(doc: SmallDocument | Absent, *, token: str, now: int) -> Change | None:
    """Free the key: the body raised, so the effect did not happen."""
    return None if tokened(doc, token) is None else Change(None)


def doubt(doc: SmallDocument | Absent, *, token: str, now: int) -> Change | None:
    """Mark the key as uncertain: the body was cut off from outside and may or may not have had its effect."""
    found = tokened(doc, token)
    return None if found is None else Change(_in_doubt(found))


def orphan(doc: SmallDocument | Absent, *, session: str, now: int) -> Change | None:
    """Mark the key as uncertain: the session at work is dead."""
    return Change(_in_doubt(doc)) if isinstance(doc, SmallDocument) and doc.session == session else None


def _in_doubt(doc: SmallDocument) -> SmallDocument:
    return replace(doc, body={**doc.body, "stand": Stand.UNCERTAIN}, session=None)


def prune(doc: SmallDocument | Absent, *, now: int, unfinished: Mapping[str, object]) -> Change | None:
    """Remove a key whose retention has passed, unless its run is still waiting or running: a retry must find it."""
    if isinstance(doc, Absent) or doc.expires_at is None or doc.expires_at > now or doc.body.get("run") in unfinished:
        return None
    return Change(None)
