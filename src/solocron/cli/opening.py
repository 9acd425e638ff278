"""A client on the store that was named, for commands that run no node. They never make a store by accident."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from solocron import surroundings
from solocron.client import Client
from solocron.errors import StoreUnavailable
from solocron.stores.url import make_store, parse

if TYPE_CHECKING:
    from solocron.stores.contract import Store

__all__ = ["named_store", "opened"]


@contextmanager
def opened(args: Namespace) -> Iterator[Client]:
    """The client, its store open; closed afterwards."""
    store = named_store(args)
    try:
        store.open()
        yield Client(store)
    finally:
        store.close()


def named_store(args: Namespace, *, make: bool = False) -> Store:
    """The store of `--store`, of SOLOCRON_STORE or the default one, not opened.

    A missing file stays missing, unless the very wish is to `make` one.
    """
    url = args.store or surroundings.store_url() or surroundings.DEFAULT_STORE
    parts = parse(url)
    store = make_store(parts.secret, namespace=args.namespace or "default")
    if parts.scheme == "sqlite" and not make:
        from solocron.stores.sql.sqlite.file import place_of

        path = place_of(parts).path
        # A link that leads nowhere is left to the store, which refuses links and says so.
        if not path.exists() and not path.is_symlink():
            where = "" if args.store else " (from SOLOCRON_STORE)" if surroundings.store_url() else " (the default)"
            raise StoreUnavailable(
                f"there is no store {parts.masked}{where}: no file {path}, and none was made. Name the store that the "
                "nodes use with --store or SOLOCRON_STORE; `solocron run` makes a new one."
            )
    return store
