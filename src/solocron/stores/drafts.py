"""Drafts: what a change makes of one document, computed without a database in sight, for every store alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.codec import decode, encode_fixed, encode_state
from solocron.model.documents.job import Job
from solocron.model.documents.run import Record
from solocron.model.documents.session import Life, Session
from solocron.stores.contract import (
    All,
    ChangeFn,
    Doc,
    Due,
    HeldBy,
    HeldByAny,
    Named,
    RecentSessions,
    Result,
    Verdict,
    Which,
    wakes,
)
from solocron.stores.documents import holders_of, same_fixed

__all__ = [
    *("Draft", "Written", "Row", "Selection", "decoded", "draft"),
    *("fits", "is_selected", "is_swept_before", "kind_and_name", "readable"),
]

_JOB, _APPLIED = Kind.JOB, Verdict.APPLIED


class Row(NamedTuple):
    """A document as it is stored: its two texts, and a mark that no other version of it ever has."""

    name: str
    mark: Any
    fixed: str
    state: str


@dataclass(slots=True)
class Selection:
    """What was found: rows by name in the order of the result (None: no such document), and the store's time."""

    rows: Mapping[str, Row | None]
    now: int
    """The time at which the changes are decided; of what is recalled, a time that the store has surely reached."""
    alive: bool = True
    """Whether the session that the update is tied to is live."""
    next_due: int | None = None
    latest: int | None = None
    """Set where rows are recalled from the write cache: they are written only if the store's clock is not past it."""


@dataclass(slots=True)
class Written:
    """What became of a commit."""

    alive: bool = True
    shut: bool = False
    """Whether the gate was not open: then nothing was written."""
    lost: set[str] = field(default_factory=set)
    """Documents that another client had changed in the meantime; nothing of them was written."""
    unknown: set[str] = field(default_factory=set)
    """Documents of a part of the commit whose reply never came."""
    refused: dict[str, str] = field(default_factory=dict)
    """Documents that the store cannot write, and why; nothing of them was written."""
    duplicates: Mapping[str, tuple[Record, ...]] = field(default_factory=dict)
    """By document, records that the log had already and that differ from those that were to be appended."""
    told: int = 0
    """The store's time, where the commit returned it."""
    holds: bool | None = None
    """Of a session that was written alone: whether it holds any job, if the commit could tell."""
    gate: tuple[str, str] | None = None
    """Of a session that was written alone: the gate of the namespace's document and the server's identity, if told."""
    mark: Any = None
    """The mark that the written documents have now, for stores that recall rows; None: the old one plus one."""


@dataclass(slots=True)
class Draft:
    """What a change makes of one document."""

    kind: Kind
    name: str
    row: Row | None
    doc: Doc | Absent | None = None
    change: Change | None = None
    fixed: str | None = None
    """The new fixed text; None where it is the old one."""
    state: str = ""
    error: str | None = None
    extra: Any = None
    """What the store has prepared for its commit."""

    @property
    def mark(self) -> Any:
        """The mark of the row it was computed from; None: there was no row."""
        return None if self.row is None else self.row.mark

    @property
    def fixed_now(self) -> str:
        """The fixed text once it is written."""
        return self.fixed if self.fixed is not None else "" if self.row is None else self.row.fixed

    @property
    def writes(self) -> bool:
        """Whether there is anything to write: returning the very document that came in, without records, is nothing."""
        change = self.change
        return self.error is None and change is not None and (change.doc is not self.doc or bool(change.records))

    @property
    def wakes(self) -> bool:
        """Whether other nodes should look again because of it."""
        assert self.change is not None
        assert self.doc is not None
        return self.change.doc is not self.doc and wakes(self.doc, self.change.doc)

    def result(self, duplicates: tuple[Record, ...] = ()) -> Result:
        """Return the result where nothing is written, or where the write has succeeded."""
        if self.error is not None:
            return Result(self.name, Verdict.BLOCKED, error=self.error)
        if self.change is None:
            return Result(self.name, Verdict.DECLINED, self.doc)
        new = self.change.doc
        doc = Absent(self.kind, self.name) if new is None else new
        return Result(self.name, _APPLIED, doc, self.change.answer, duplicates=duplicates)


def draft(
    kind: Kind,
    name: str,
    row: Row | None,
    change: ChangeFn,
    now: int,
    *,
    which: Which | None = None,
    read: Callable[[Kind, Row], Doc] | None = None,
    prepare: Callable[[Draft], None] | None = None,
    own: tuple[type[Exception], ...] = (Exception,),
) -> Draft | None:
    """Call the change; whatever is wrong with one document stays with that document.

    With `which`, a document that has left that selection is not passed to the change: None. `prepare` is what the store
    makes of the draft before its commit; an error of it is the document's too. `own` are the errors that are.
    """
    made = Draft(kind, name, row)
    try:
        made.doc = doc = Absent(kind, name) if row is None else (read or decoded)(kind, row)
        if which is not None and not is_selected(which, doc, now):
            return None
        made.change = wanted = change(doc, now)
        if wanted is None:
            return made
        new = wanted.doc
        if new is not None and new is not doc:
            if kind_and_name(new) != (kind, name):
                raise ValueError(f"the change of {kind} {name!r} returned {' '.join(kind_and_name(new))!r}")
            if row is None or not same_fixed(doc, new):
                made.fixed = encode_fixed(new)
                if row is not None and made.fixed == row.fixed:
                    made.fixed = None
            made.state = encode_state(new)
        if prepare is not None and made.writes:
            prepare(made)
    except own as error:  # a poisoned document must not stop the others, whatever it raises
        return Draft(kind, name, row, error=f"{type(error).__name__}: {error}")
    return made


def decoded(kind: Kind, row: Row) -> Doc:
    """Return the document of a row; raise where its texts are broken."""
    return decode(kind, row.name, row.fixed, row.state)


def readable(kind: Kind, row: Row, read: Callable[[Kind, Row], Doc] = decoded) -> Doc | None:
    """Return the document, or None where its text is broken: one bad document must not hide the others."""
    try:
        return read(kind, row)
    except (ValueError, TypeError, LookupError):
        return None


def kind_and_name(doc: Doc) -> tuple[Kind, str]:
    """Return the kind and the name of a document."""
    if isinstance(doc, SmallDocument):
        return doc.kind, doc.name
    return _JOB if isinstance(doc, Job) else Kind.SESSION, doc.name


def is_selected(which: Which, doc: Doc | Absent, now: int) -> bool:
    """Return whether a document, as it is now, belongs to a selection. Whether it is set aside, the store knows."""
    match which:
        case Due():
            return isinstance(doc, Job) and doc.due_at is not None and doc.due_at <= now and fits(which, doc)
        case HeldBy(session):
            return session in holders_of(doc)
        case HeldByAny():
            return bool(holders_of(doc))
        case Named():
            return True
        case All(_, after):
            return not isinstance(doc, Absent) and doc.name > after
        case RecentSessions(since):
            return isinstance(doc, Session) and (
                doc.state is not Life.SWEPT or (since is not None and (doc.ended_at or 0) >= since)
            )


def fits(which: Due, job: Job) -> bool:
    """Return whether a job, once it is due, is one of those that the selection asks for."""
    policy = job.definition
    return policy.handler in which.handlers and policy.pool in which.pools and job.name not in which.exclude


def is_swept_before(doc: Doc, before: int) -> bool:
    """Return whether a session is swept and ended before then: it can be pruned."""
    return isinstance(doc, Session) and doc.state is Life.SWEPT and doc.ended_at is not None and doc.ended_at < before
