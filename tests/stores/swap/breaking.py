"""Breaks a document of a store of this family where it lies."""

from __future__ import annotations

from solocron.model.change import Kind
from solocron.stores.contract import Store
from solocron.stores.swap.layout import document_key, packed, unpacked
from solocron.stores.swap.store import SwapStore

__all__ = ["break_text"]


def break_text(store: Store, kind: Kind, name: str) -> None:
    """Cut the text of a document off; its header stays."""
    assert isinstance(store, SwapStore)
    keys = store._keys
    item = keys.fetch([key := document_key(kind, name)]).items[key]
    header, fixed, _ = unpacked(item.value)
    assert header is not None
    keys.commit({}, {key: packed(header, fixed, '{"c": 1, "broken')})
