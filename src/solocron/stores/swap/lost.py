"""Finds out what became of a commit whose reply was lost, and calls off one that has not arrived yet.

Every document that a commit writes bears its token. A document that still has the mark that the commit checks is
written once more with the same content: that gives it another mark, so that the commit fails whenever it arrives. Only
where neither can be learnt in time, or where there was no document to look at, does the outcome stay unknown.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from solocron.errors import StoreError
from solocron.stores.swap.calls import KeyCalls
from solocron.stores.swap.key_store import Item, Lost, Swapped
from solocron.stores.swap.layout import header_of
from solocron.stores.swap.portions import Wish

__all__ = ["LostCommit", "LostVerdict", "find_out"]

_AGAIN = 0.05
"""Seconds between two looks at a server that may be starting."""


class LostVerdict(Enum):
    """What became of a commit."""

    APPLIED = "applied"
    VOID = "void"
    """It did nothing and never will."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LostCommit:
    """What is known of it, and the marks of the documents that it wrote."""

    verdict: LostVerdict
    marks: Mapping[str, Hashable] = field(default_factory=dict)


def find_out(calls: KeyCalls, wishes: Sequence[Wish], token: str, patience: float) -> LostCommit:
    """Return what became of the commit of this token, within `patience` seconds."""
    until = calls.boot() + patience
    while True:
        try:
            items = calls.fetch([wish.key for wish in wishes]).items
            marks = {item.key: item.mark for item in items.values() if _token_of(item) == token}
            if marks:
                return LostCommit(LostVerdict.APPLIED, marks)
            unchanged = [item for wish in wishes if (item := items.get(wish.key)) and item.mark == wish.old_mark]
            if not unchanged:
                return LostCommit(LostVerdict.UNKNOWN)
            if _call_off(calls, unchanged[0]):
                return LostCommit(LostVerdict.VOID)
        except StoreError:
            pass
        pause = min(_AGAIN, patience / 10)
        if calls.boot() + pause >= until:
            break  # another look may take as long as the first
        calls.pause(pause)
    return LostCommit(LostVerdict.UNKNOWN)


def _token_of(item: Item) -> str:
    header = header_of(item.value)
    return "" if header is None else header.token


def _call_off(calls: KeyCalls, item: Item) -> bool:
    """Give a document another mark and nothing else; return whether that was this call's doing."""
    try:
        return isinstance(calls.commit({item.key: item.mark}, {item.key: item.value}), Swapped)
    except Lost:
        return False
