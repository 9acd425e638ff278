"""ZooKeeper by its own protocol: no driver is needed. A commit is one transaction of ZooKeeper's."""

from __future__ import annotations

from datetime import timedelta

from solocron.stores.swap.store import SwapStore
from solocron.stores.swap.zookeeper.address import ZooAddress
from solocron.stores.swap.zookeeper.keys import ZooKeys
from solocron.stores.url import StoreUrl

__all__ = ["ZooStore"]


class ZooStore(SwapStore):
    """One client of a namespace in ZooKeeper."""

    def __init__(
        self, parts: StoreUrl, *, namespace: str = "default", lease: timedelta = timedelta(seconds=15)
    ) -> None:
        # A commit and the question for its lost reply both fit into a third of the lease.
        timeout = min(5.0, max(lease.total_seconds() / 6, 0.05))
        keys = ZooKeys(ZooAddress.of(parts, timeout=timeout), namespace)
        super().__init__(keys, namespace=namespace, lease=lease)
