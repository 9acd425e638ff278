"""Silences: alarms that a person does not want to be told of, until an instant. Every node of the namespace obeys them.

A silence is a small document beside the alarms. It names a kind (`late`), jobs by a pattern (`billing-*`), or both
(`late:billing-*`). It always has an end: an alarm that is silenced forever is a fault that has been forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents.alarm import KINDS

__all__ = ["Silence", "document_of", "expire", "lift", "read_silences", "silence", "silenced_by", "split"]

_PREFIX = ".silence:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """One silence: what is not told, until when, who said so and why."""

    what: str
    until: int
    at: int
    by: str | None = None
    note: str | None = None

    def covers(self, kind: str, subject: str, *, now: int) -> bool:
        """Return whether an alarm is not told at that time."""
        of_kind, pattern = split(self.what)
        return now < self.until and of_kind in (None, kind) and fnmatchcase(subject, pattern)


def split(what: str) -> tuple[str | None, str]:
    """Return the kind that a silence names, None for all, and the pattern of what the alarms are about."""
    if what in KINDS:
        return what, "*"
    kind, colon, pattern = what.partition(":")
    return (kind, pattern) if colon and kind in KINDS else (None, what)


def document_of(what: str) -> str:
    """Return the name of the document of a silence."""
    return f"{_PREFIX}{what}"


def silence(doc: SmallDocument | Absent, silence: Silence) -> Change:
    """Write a silence; one of the same words is replaced."""
    body = {"state": "silence", "until": silence.until, "at": silence.at, "by": silence.by, "note": silence.note}
    return Change(SmallDocument(kind=Kind.ALARM, name=doc.name, body=body))


def lift(doc: SmallDocument | Absent) -> Change | None:
    """Remove a silence; None if there is none."""
    return None if isinstance(doc, Absent) else Change(None, answer=True)


def expire(doc: SmallDocument | Absent, *, now: int) -> Change | None:
    """Remove a silence whose end has come; None while it lasts."""
    if isinstance(doc, Absent) or doc.body["until"] > now:
        return None
    return Change(None)


def read_silences(docs: Iterable[SmallDocument]) -> list[Silence]:
    """Return the silences among the documents of alarms, those that end first at the front."""
    found = [
        Silence(
            what=doc.name.removeprefix(_PREFIX),
            until=doc.body["until"],
            at=doc.body["at"],
            by=doc.body["by"],
            note=doc.body["note"],
        )
        for doc in docs
        if doc.body.get("state") == "silence"
    ]
    return sorted(found, key=lambda silence: (silence.until, silence.what))


def silenced_by(silences: Iterable[Silence], kind: str, subject: str, *, now: int) -> Silence | None:
    """Return the silence that covers an alarm the longest, or None."""
    covering = [silence for silence in silences if silence.covers(kind, subject, now=now)]
    return max(covering, key=lambda silence: silence.until, default=None)
