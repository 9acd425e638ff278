"""Unpacks parcels: writes the records that a commit could not hold, each parcel with its own deletion."""

from __future__ import annotations

from collections.abc import Sequence

from solocron.errors import StoreError
from solocron.stores.swap.calls import KeyCalls
from solocron.stores.swap.key_store import ABSENT, Condition, Item, Lost, Span, Swapped
from solocron.stores.swap.layout import log_keys
from solocron.stores.swap.portions import records_in

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
        records = records_in(parcel.value)
        for _ in range(_TRIES):
            # An attempt that is on record already keeps its first record, whichever document brought it.
            checks: dict[str, Condition] = {parcel.key: parcel.mark} | dict.fromkeys(records, ABSENT)
            writes: dict[str, str | None] = {parcel.key: None}
            for record in records.values():
                writes |= log_keys(record)
            try:
                reply = calls.commit(checks, writes)
            except Lost as error:
                raise StoreError(f"no reply while a parcel was unpacked ({error}); it is unpacked later") from None
            if isinstance(reply, Swapped) or parcel.key not in calls.fetch([parcel.key]).items:
                break
            there = calls.fetch(list(records)).items
            records = {key: record for key, record in records.items() if key not in there}
