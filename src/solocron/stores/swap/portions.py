"""What a draft asks of a commit, and batches of drafts within the limits of the server.

A change may append more records than one commit can hold. Then the document is committed with *parcels*; the writer
unpacks them at once, and a client that finds one left over does it instead. Records are taken out of a parcel together
with its deletion, or with what is left of it, under the check that it is still as it was read, so that a client that
was frozen in the middle writes nothing. Until then readers of the log read parcels too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from solocron.model.documents.run import Record
from solocron.stores.drafts import Draft
from solocron.stores.swap.key_store import ABSENT, Condition, KeyLimits
from solocron.stores.swap.layout import (
    NO_HEADER,
    Header,
    Stamp,
    aside_key,
    changed,
    document_key,
    fixed_key,
    log_keys,
    packed,
    record_at,
    run_key,
)

__all__ = ["Wish", "in_portions", "parcel_text", "records_in", "refusal", "unpacked_at_once", "wish_of"]

_SHARED = 3
"""Keys of a commit that belong to no draft: the live session, the namespace's document, the notification."""
_OF_RECORD = 3
"""Keys of a record."""
_ROOM = 1_000
"""Bytes of a commit around its values and keys."""


@dataclass(slots=True)
class Wish:
    """One draft as checks and writes."""

    draft: Draft
    key: str
    header: Header | None
    """The new header; None if the document is deleted."""
    index: dict[str, str | None]
    """Writes beside the document and its records."""
    records: dict[str, Record] = field(default_factory=dict)
    """Records to append, by their `run/` keys."""
    duplicates: list[Record] = field(default_factory=list)
    parcels: dict[str, list[Record]] = field(default_factory=dict)
    """Records that are packed into a key each, because one commit cannot hold them."""
    value: str = ""
    """The document as it was written last."""
    token: str = ""
    """The last commit that was tried."""
    written: bool = False
    stamp: Stamp | None = None
    """Its mark and header once they are written; a deleted document has none."""

    @property
    def name(self) -> str:
        return self.draft.name

    @property
    def old_mark(self) -> Condition:
        stamp = self.draft.mark
        return ABSENT if stamp is None else stamp.mark

    def checks(self) -> dict[str, Condition]:
        return {self.key: self.old_mark} | dict.fromkeys(self.records, ABSENT)

    def writes(self, token: str, time: int) -> dict[str, str | None]:
        """Return the writes of a commit of this token."""
        self.token = token
        writes = dict(self.index)
        for record in self.records.values():
            writes |= log_keys(record)
        for number, records in self.parcels.items():
            writes[f"parcel/{token}/{number}"] = parcel_text(records)
        if self.header is None:
            return writes | {self.key: None}
        self.header = replace(self.header, token=token, time=time, parcel=token if self.parcels else "")
        self.value = packed(self.header, self.draft.fixed_now, _state_of(self.draft))
        return writes | {self.key: self.value}

    @property
    def keys(self) -> int:
        """Keys that it checks or writes."""
        return 1 + len(self.index) + _OF_RECORD * len(self.records) + len(self.parcels)

    @property
    def bytes(self) -> int:
        sizes = _size_of(self.draft.fixed_now) + _size_of(_state_of(self.draft)) + _ROOM
        sizes += sum(_size_of(key) + _size_of(value or "") for key, value in self.index.items())
        records = [*self.records.values(), *(record for part in self.parcels.values() for record in part)]
        return sizes + sum(_size_of(key) + _size_of(value) for one in records for key, value in log_keys(one).items())


def wish_of(draft: Draft) -> Wish:
    """Return what a draft asks for; raise for a text that UTF-8 cannot carry."""
    change, old = draft.change, draft.mark
    assert change is not None
    kind, name, new = draft.kind, draft.name, change.doc
    known = (old.header if old is not None else None) or NO_HEADER
    index: dict[str, str | None] = {}
    header: Header | None = None
    if new is draft.doc:
        # Only records: the document is rewritten too, so that a lost reply can be told by its token.
        header = known
    else:
        if new is not None:
            header = Header.of(new, draft.fixed_now)
            for text in (name, draft.fixed_now, draft.state):
                text.encode()
        index = changed(known.index(kind, name), {} if header is None else header.index(kind, name))
        if known.aside:
            index[aside_key(kind, name)] = None
        digest = "" if header is None else header.digest
        if digest and digest != known.digest:
            index[fixed_key(kind, name)] = draft.fixed_now
        elif known.digest and not digest:
            index[fixed_key(kind, name)] = None
    wish = Wish(draft, document_key(kind, name), header, index)
    for record in change.records:
        key = run_key(record.run, record.attempt)
        first = wish.records.setdefault(key, record)
        if first != record:
            wish.duplicates.append(first)
        key.encode()
    return wish


def _state_of(draft: Draft) -> str:
    """Return the state text to write; a draft that leaves the document alone has none of its own."""
    assert draft.change is not None
    if draft.change.doc is draft.doc:
        return "" if draft.row is None else draft.row.state
    return draft.state


def refusal(wish: Wish, limits: KeyLimits) -> str:
    """Return why no commit can hold a wish, once its records are packed where they are too many; empty: one can."""
    if wish.keys + _SHARED > limits.keys and wish.records:
        _pack(wish, limits)
    if wish.keys + _SHARED > limits.keys:
        return f"its change needs {wish.keys} keys in one commit, and the server takes {limits.keys - _SHARED}"
    if wish.bytes > limits.bytes or (not wish.parcels and wish.bytes > limits.value):
        return f"its change has {wish.bytes} bytes, and the server takes {min(limits.bytes, limits.value)} at once"
    return ""


def in_portions(wishes: Sequence[Wish], limits: KeyLimits) -> Iterator[list[Wish]]:
    """Yield what goes into one commit."""
    portion: list[Wish] = []
    keys = size = 0
    for wish in wishes:
        if portion and (keys + wish.keys + _SHARED > limits.keys or size + wish.bytes > limits.bytes):
            yield portion
            portion, keys, size = [], 0, 0
        portion.append(wish)
        keys, size = keys + wish.keys, size + wish.bytes
    if portion:
        yield portion


def unpacked_at_once(limits: KeyLimits) -> int:
    """Return how many records one commit can take out of a parcel."""
    return max(1, (limits.keys - 1) // _OF_RECORD)


def _pack(wish: Wish, limits: KeyLimits) -> None:
    """Turn the records of a wish into parcels, as many as the commit has room for."""
    room = max(1, limits.keys - _SHARED - 1 - len(wish.index))
    most = max(unpacked_at_once(limits), -(-len(wish.records) // room))
    part: list[Record] = []
    size = 0
    for record in wish.records.values():
        needs = sum(_size_of(key) + _size_of(value) for key, value in log_keys(record).items())
        if part and (len(part) >= most or size + needs > min(limits.value, limits.bytes) // 2):
            wish.parcels[str(len(wish.parcels))] = part
            part, size = [], 0
        part.append(record)
        size += needs
    if part:
        wish.parcels[str(len(wish.parcels))] = part
    wish.records = {}


def _size_of(text: str) -> int:
    """Return the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def parcel_text(records: Sequence[Record]) -> str:
    """Return records as the value of a parcel."""
    pairs = []
    for record in records:
        key, value = next(iter(log_keys(record).items()))
        pairs.append([key, value])
    return json.dumps(pairs, ensure_ascii=False, separators=(",", ":"))


def records_in(value: str) -> dict[str, Record]:
    """Return the records of a parcel by their `run/` keys."""
    return {key: record_at(key, text) for key, text in json.loads(value)}
