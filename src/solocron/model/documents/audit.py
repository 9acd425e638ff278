"""The audit: who asked for what, by which way, and what came of it. One small document per act, written before the act.

An entry is written as asked and completed once; after that it never changes. One that stays asked tells that the
outcome is unknown. Its name counts down from its time, so that the newest entries come first in the order of names,
and everything older than an instant follows one name.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from solocron.clock import SECOND
from solocron.model.change import Absent, Change, Kind, SmallDocument

__all__ = ["ASKED", "DONE", "KEEP", "Act", "Entry", "ask", "complete", "name_before", "name_of", "prune", "read"]

ASKED = "asked"
"""The result of an act whose outcome is not on record."""
DONE = "done"
KEEP = 366 * 86_400 * SECOND
"""How long an entry is kept."""
_LAST = 10**18
"""Larger than any instant in microseconds; names have as many digits less one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One request to change something, as it was asked."""

    act: str
    """The verb: pause, trigger, cancel, ..."""
    subject: str
    """A job, a run, a lock, or the words of a scope."""
    via: str
    """`dashboard`, `api`, `cli` or `python`."""
    who: str | None = None
    role: str | None = None
    address: str | None = None
    """Where the request came from."""
    note: str | None = None
    request: str | None = None
    """Id of the HTTP request, as in the access log."""
    before: Any = None
    """What the act was to change, as it was; plain JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An act on record."""

    name: str
    at: int
    act: Act
    result: str
    """`asked`, `done`, or the sentence in which it was refused."""
    after: Any = None


def name_of(at: int, token: str) -> str:
    """Return the name of an entry; a later one comes before it. The token tells two of one microsecond apart."""
    return f"{_LAST - at:018}-{token}"


def name_before(at: int) -> str:
    """Return the name after which all entries from before an instant follow, and no others."""
    return f"{_LAST - at:018}-~"


def ask(doc: SmallDocument | Absent, act: Act, *, at: int) -> Change:
    """Put an act on record before it is done. One that is there is our own repeated request."""
    if isinstance(doc, SmallDocument):
        return Change(doc)
    told = {field.name: value for field in fields(act) if (value := getattr(act, field.name)) is not None}
    return Change(SmallDocument(kind=Kind.AUDIT, name=doc.name, body={"at": at, "act": told, "result": ASKED}))


def complete(doc: SmallDocument | Absent, *, result: str, after: Any = None) -> Change | None:
    """Add what came of an act; None if that is on record already, or the entry is gone."""
    if isinstance(doc, Absent) or doc.body["result"] != ASKED:
        return None
    more = {} if after is None else {"after": after}
    return Change(replace(doc, body={**doc.body, "result": result, **more}))


def read(doc: SmallDocument) -> Entry:
    """Return an entry from its document."""
    body = doc.body
    return Entry(name=doc.name, at=body["at"], act=Act(**body["act"]), result=body["result"], after=body.get("after"))


def prune(doc: SmallDocument | Absent, *, before: int) -> Change | None:
    """Remove an entry from before an instant: age is the only reason for which one goes."""
    return Change(None) if isinstance(doc, SmallDocument) and doc.body["at"] < before else None
