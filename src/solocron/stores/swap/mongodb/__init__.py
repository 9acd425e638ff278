"""MongoDB: a namespace is some documents of a collection, and a commit is one transaction of a replica set."""

from __future__ import annotations

from datetime import timedelta

from solocron.stores.swap.mongodb.address import MongoAddress
from solocron.stores.swap.mongodb.keys import MongoKeys
from solocron.stores.swap.store import SwapStore
from solocron.stores.url import StoreUrl

__all__ = ["MongoStore"]


class MongoStore(SwapStore):
    """One client of a namespace in MongoDB."""

    def __init__(
        self, parts: StoreUrl, *, namespace: str = "default", lease: timedelta = timedelta(seconds=15)
    ) -> None:
        # A commit and the question for its lost reply both fit into a third of the lease.
        timeout = min(5.0, max(lease.total_seconds() / 6, 0.05))
        keys = MongoKeys(MongoAddress.of(parts, timeout=timeout), namespace)
        super().__init__(keys, namespace=namespace, lease=lease)
