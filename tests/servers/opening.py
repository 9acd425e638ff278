"""Stores of real servers, opened for one test and closed after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

from solocron.stores.contract import Store
from solocron.stores.url import make_store

__all__ = ["opened_as"]

S = TypeVar("S", bound=Store)


@contextmanager
def opened_as(
    kind: type[S], url: str, *, lease: timedelta = timedelta(seconds=15), namespace: str = "default"
) -> Iterator[S]:
    """Open the store of a URL, which is one of this kind; close it also if it cannot be opened_as."""
    store = make_store(url, lease=lease, namespace=namespace)
    assert isinstance(store, kind)
    try:
        store.open()
        yield store
    finally:
        store.close()
