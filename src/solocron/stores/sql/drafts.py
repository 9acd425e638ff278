"""What a change wants of one document: computed without a database in sight, for every dialect alike."""

from __future__ import annotations

from dataclasses import dataclass

from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.codec import decode, encode_fixed, encode_state
from solocron.model.documents.job import Job
from solocron.model.documents.run import Record
from solocron.stores.contract import ChangeFn, Doc, Due, HeldBy, HeldByAny, Named, Result, Verdict, Which
from solocron.stores.documents import holders_of, same_fixed
from solocron.stores.write_cache import Recent

__all__ = ["Draft", "Row", "draft", "is_selected", "readable"]

_JOB, _APPLIED = Kind.JOB, Verdict.APPLIED
Row = tuple[str, int, str, str]
"""A document as it was read: name, version, the fixed text, the state's text."""


@dataclass(slots=True)
class Draft:
    """What a change wants of one document. `version` is that of the row it was computed from; None: no row."""

    kind: Kind
    name: str
    version: int | None
    doc: Doc | Absent | None = None
    change: Change | None = None
    fixed: str | None = None
    """The new fixed text; None where it is the old one."""
    state: str = ""
    fixed_before: str = ""
    error: str | None = None

    @property
    def fixed_now(self) -> str:
        """The fixed text once it is written."""
        return self.fixed_before if self.fixed is None else self.fixed

    @property
    def writes(self) -> bool:
        """Whether there is anything to write: returning the very document that came in, without records, is nothing."""
        change = self.change
        return self.error is None and change is not None and (change.doc is not self.doc or bool(change.records))

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
    recent: Recent | None = None,
) -> Draft | None:
    """Let the change decide; whatever is wrong with one document stays with that document.

    With `which`, a document that has left that selection is not handed to the change: None.
    """
    version = None if row is None else row[1]
    try:
        doc: Doc | Absent
        if row is None:
            doc = Absent(kind, name)
        else:
            known = recent.take(name, row[2], row[3]) if recent is not None and kind is _JOB else None
            doc = decode(kind, name, row[2], row[3]) if known is None else known
        if which is not None and not is_selected(which, doc, now):
            return None
        wanted = change(doc, now)
        if wanted is None:
            return Draft(kind, name, version, doc)
        new = wanted.doc
        if new is None or new is doc:
            return Draft(kind, name, version, doc, wanted)
        if new.name != name or _kind(new) is not kind:
            raise ValueError(f"the change of {kind} {name!r} answered with {_kind(new)} {new.name!r}")
        fixed = None if row is not None and same_fixed(doc, new) else encode_fixed(new)
        if row is not None and fixed == row[2]:
            fixed = None
        return Draft(kind, name, version, doc, wanted, fixed, encode_state(new), "" if row is None else row[2])
    except Exception as error:  # noqa: BLE001 - a poisoned document must not stop the others, whatever it raises
        return Draft(kind, name, version, error=f"{type(error).__name__}: {error}")


def _kind(doc: Doc) -> Kind:
    if isinstance(doc, Job):
        return _JOB
    return doc.kind if isinstance(doc, SmallDocument) else Kind.SESSION


def is_selected(which: Which, doc: Doc | Absent, now: int) -> bool:
    """Whether a document that was read again by its name still belongs to the selection."""
    match which:
        case Due():
            return isinstance(doc, Job) and doc.due_at is not None and doc.due_at <= now
        case HeldBy(session):
            return session in holders_of(doc)
        case HeldByAny():
            return bool(holders_of(doc))
        case Named():
            return True
        case _:
            return not isinstance(doc, Absent)


def readable(kind: Kind, row: Row) -> Doc | None:
    """The document, or None where its text is broken: one bad document must not hide the others."""
    try:
        return decode(kind, row[0], row[2], row[3])
    except (ValueError, TypeError, LookupError):
        return None
