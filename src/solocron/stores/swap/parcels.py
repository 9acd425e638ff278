"""Unpacks parcels: writes the records that a commit could not hold, each parcel with its own deletion."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from solocron.errors import StoreError
from solocron.stores.swap.calls import KeyCalls
from solocron.stores.swap.key_store import ABSENT, Condition, Item, Lost, Span, Swapped
from solocron.stores.swap.layout import log_keys
from solocron.stores.swap.portions import parcel_text, records_in, unpacked_at_once

__all__ = ["PARCELS", "unpack", "unpack_all"]

PARCELS = "parcel/"
_TRIES = 8


def unpack_all(calls: KeyCalls, token: str = "") -> None:
    """Unpack the parcels of a commit, or of all."""
    prefix = f"{PARCELS}{token}/" if token else PARCELS
    unpack(calls, calls.fetch((), (Span.below(prefix),)).pages[0])


def unpack(calls: KeyCalls, parcels: Sequence[Item]) -> None:
    """Unpack these parcels; one that another client has unpacked in between is left alone."""
    for parcel in parcels:
        _unpack(calls, parcel)


def _unpack(calls: KeyCalls, parcel: Item) -> None:
    records, mark = records_in(parcel.value), parcel.mark
    most, tries = unpacked_at_once(calls.keys.limits), 0
    while tries < _TRIES:
        part = dict(islice(records.items(), most))
        rest = {key: record for key, record in records.items() if key not in part}
        # An attempt that is on record already keeps its first record, whichever document brought it.
        checks: dict[str, Condition] = {parcel.key: mark} | dict.fromkeys(part, ABSENT)
        writes: dict[str, str | None] = {parcel.key: parcel_text(list(rest.values())) if rest else None}
        for record in part.values():
            writes |= log_keys(record)
        try:
            reply = calls.commit(checks, writes)
        except Lost as error:
            raise StoreError(f"no reply while a parcel was unpacked ({error}); it is unpacked later") from None
        if isinstance(reply, Swapped):
            if not rest:
                return
            records, mark, tries = rest, reply.marks[parcel.key], 0
            continue
        tries += 1
        there = calls.fetch([parcel.key, *part]).items
        if parcel.key not in there:
            return
        if there[parcel.key].mark != mark:  # another client has taken out a part of it
            records, mark = records_in(there[parcel.key].value), there[parcel.key].mark
        records = {key: record for key, record in records.items() if key not in there}
