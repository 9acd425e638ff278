"""A draft as words of the `swap` command."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from solocron.model.documents.job import Job
from solocron.model.documents.namespace import gate_of
from solocron.model.documents.session import Session
from solocron.stores.contract import Doc
from solocron.stores.documents import holders_of, marks_of
from solocron.stores.drafts import Draft
from solocron.stores.redis.records import RECORD, record_words, spelt_records
from solocron.stores.redis.wire import Words, spell

__all__ = ["Spelt", "spelt"]


class Spelt(NamedTuple):
    """A draft in the protocol's own form, and what the server keeps beside the version in its mark."""

    words: Words
    mark: str = "  "


def spelt(draft: Draft) -> Spelt:
    """Spell a draft; raise for a word that UTF-8 cannot carry."""
    change = draft.change
    assert change is not None
    new, expected = change.doc, draft.mark or ""
    records = record_words(change.records)
    if new is draft.doc:
        return Spelt(spell(["log", draft.name, expected, "0", *records]))
    wakes = "1" if draft.wakes else "0"
    if new is None:
        return Spelt(spell(["delete", draft.name, expected, wakes, *records]))
    if isinstance(new, Job):
        return _job(draft, new, expected, wakes)
    holders = _joined(new)
    if isinstance(new, Session):
        ended = "" if new.ended_at is None else str(new.ended_at)
        columns = ["session", draft.fixed_now, draft.state, new.state, ended, str(new.beats)]
    else:
        columns = ["small", draft.fixed_now, draft.state, holders, gate_of(new) or ""]
    words = spell([columns[0], draft.name, expected, wakes, *columns[1:], *records])
    return Spelt(words, f"  {holders}")


def _job(draft: Draft, new: Job, expected: str, wakes: str) -> Spelt:
    due, holders = "" if new.due_at is None else str(new.due_at), _joined(new)
    mark = f" {due} {holders}"
    old, new_marks = marks_of(draft.doc), marks_of(new)
    marks = "" if old == new_marks else str(new_marks)
    name, state, records = draft.name, draft.state, draft.change.records if draft.change is not None else ()
    if draft.fixed is not None:
        policy = new.definition
        columns = [draft.fixed, state, due, holders, policy.pool, policy.handler, marks]
        return Spelt(spell(["job", name, expected, wakes, *columns, *record_words(records)]), mark)
    # A claim or an end, spelt by hand: word by word it would cost as much as all the rest of the draft.
    text = (
        f"$5\r\nstate\r\n${len(name)}\r\n{name}\r\n${len(expected)}\r\n{expected}\r\n$1\r\n{wakes}\r\n"
        f"${len(state)}\r\n{state}\r\n${len(due)}\r\n{due}\r\n${len(holders)}\r\n{holders}\r\n${len(marks)}\r\n{marks}\r\n{spelt_records(records)}"
    )
    if text.isascii():
        return Spelt(tuple.__new__(Words, (9 + RECORD * len(records), text)), mark)
    return Spelt(spell(["state", name, expected, wakes, state, due, holders, marks, *record_words(records)]), mark)


def _joined(doc: Doc) -> str:
    """Return the holders as one text, each behind its length in bytes."""
    return _prefixed(holders_of(doc))


@lru_cache(maxsize=256)
def _prefixed(holders: frozenset[str]) -> str:
    return "".join(f"{len(holder.encode())}:{holder}" for holder in sorted(holders))
