"""What a change wants of one document, computed without touching Redis, as words of the `swap` command."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.codec import decode, encode_fixed, encode_state
from solocron.model.documents.job import Job
from solocron.model.documents.namespace import gate_of
from solocron.model.documents.session import Session
from solocron.stores.contract import ChangeFn, Doc, Due, HeldBy, HeldByAny, Named, Which, wakes
from solocron.stores.documents import holders_of, kind_of, same_fixed
from solocron.stores.redis.records import RECORD, record_words, spelt_records
from solocron.stores.redis.wire import NOTHING, Row, Words, spell
from solocron.stores.write_cache import Recent

__all__ = ["Draft", "draft", "readable", "still_selected"]


_JOB = Kind.JOB


@dataclass(slots=True)
class Draft:
    """`spelt` is NOTHING where there is nothing to write; `error` says why the document fails on its own."""

    name: str
    row: Row
    doc: Doc | Absent | None = None
    change: Change | None = None
    spelt: Words = NOTHING
    words: Sequence[str] = ()
    """What was spelt, except where only a state is written."""
    state: str | None = None
    """The new state, where only that is written."""
    mark: str = ""
    """Then also what the server keeps beside the version to compare the document by."""
    error: str | None = None


def draft(
    kind: Kind, row: Row, change: ChangeFn, now: int, recent: Recent | None = None, known: Job | None = None
) -> Draft:
    """Ask the change; whatever is wrong with one document stays with that document. `known`: the row is this one."""
    made = Draft(row.name, row)
    try:
        if known is None and recent is not None and kind is _JOB:
            known = recent.take(row.name, row.fixed, row.state)
        doc = document(kind, row) if known is None else known
        wanted = change(doc, now)
        made.doc, made.change = doc, wanted
        if wanted is not None and (wanted.doc is not doc or wanted.records):
            new = wanted.doc
            if new is not None and new is not doc and new.name == row.name and same_fixed(doc, new):
                _spell_state(made, doc, new, wanted)
            else:
                made.words = _words(kind, row, doc, wanted)
                made.spelt = spell(made.words)
    except Exception as error:  # noqa: BLE001 - a poisoned document must not stop the others, whatever it raises
        made.error = f"{type(error).__name__}: {error}"
    return made


def document(kind: Kind, row: Row) -> Doc | Absent:
    """The document of a row; raises where it cannot be read."""
    if not row.version:
        return Absent(kind, row.name)
    if row.version == "!":
        raise ValueError(f"the key of {kind} {row.name!r} is not a document: {row.fixed}")
    return decode(kind, row.name, row.fixed, row.state)


def readable(kind: Kind, row: Row) -> Doc | None:
    """The document, or None where there is none or its text is broken: one bad document must not hide the others."""
    try:
        doc = document(kind, row)
    except (ValueError, TypeError, LookupError):
        return None
    return None if isinstance(doc, Absent) else doc


def _spell_state(made: Draft, old: Doc | Absent, new: Doc, change: Change) -> None:
    """A claim or an end, by hand: word by word it would cost as much as all the rest of the draft."""
    assert isinstance(new, Job)
    (name, version, _, _), records = made.row, change.records
    made.state = state = encode_state(new)
    due, holders = "" if new.due_at is None else str(new.due_at), _joined(new)
    made.mark = f"{due} {holders}"
    rings = "1" if wakes(old, new) else "0"
    text = (
        f"$5\r\nstate\r\n${len(name)}\r\n{name}\r\n${len(version)}\r\n{version}\r\n$1\r\n{rings}\r\n"
        f"${len(state)}\r\n{state}\r\n${len(due)}\r\n{due}\r\n${len(holders)}\r\n{holders}\r\n{spelt_records(records)}"
    )
    if text.isascii():
        made.spelt = tuple.__new__(Words, (8 + RECORD * len(records), text))
    else:
        made.spelt = spell(["state", name, version, rings, state, due, holders, *record_words(records)])


def _words(kind: Kind, row: Row, old: Doc | Absent, change: Change) -> list[str]:
    new = change.doc
    if new is old:
        return ["log", row.name, row.version, "0", *record_words(change.records)]
    rings = "1" if wakes(old, new) else "0"
    if new is None:
        return ["delete", row.name, row.version, rings, *record_words(change.records)]
    if isinstance(new, Job):
        due, definition = "" if new.due_at is None else str(new.due_at), new.definition
        texts = encode_fixed(new), encode_state(new)
        columns = ["job", *texts, due, _joined(new), definition.pool, definition.handler]
        found: tuple[Kind, str] = (_JOB, new.name)
    elif isinstance(new, Session):
        ended = "" if new.ended_at is None else str(new.ended_at)
        columns = ["session", encode_fixed(new), encode_state(new), new.state, ended, str(new.beats)]
        found = (Kind.SESSION, new.name)
    else:
        columns = ["note", encode_fixed(new), encode_state(new), _joined(new), gate_of(new) or ""]
        found = (new.kind, new.name)
    if found != (kind, row.name):
        raise ValueError(f"the change of {kind} {row.name!r} answered with {found[0]} {found[1]!r}")
    return [columns[0], row.name, row.version, rings, *columns[1:], *record_words(change.records)]


def _joined(doc: Job | SmallDocument) -> str:
    """The holders as one text, each behind its length in bytes."""
    return _prefixed(holders_of(doc))


@lru_cache(maxsize=256)
def _prefixed(holders: frozenset[str]) -> str:
    return "".join(f"{len(holder.encode())}:{holder}" for holder in sorted(holders))


def still_selected(which: Which, row: Row, now: int) -> bool:
    """Whether a document that was lost to another client belongs to the selection as it is now."""
    if isinstance(which, Named):
        return True
    doc = readable(kind_of(which), row)
    if doc is None:
        return bool(row.version)  # cannot be read: the next draft says why
    if isinstance(which, Due):
        return (
            isinstance(doc, Job)
            and doc.due_at is not None
            and doc.due_at <= now
            and doc.definition.handler in which.handlers
            and doc.definition.pool in which.pools
        )
    if isinstance(which, HeldByAny):
        return bool(holders_of(doc))
    return which.session in holders_of(doc) if isinstance(which, HeldBy) else True
