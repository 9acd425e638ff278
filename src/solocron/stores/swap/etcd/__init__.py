"""etcd by its JSON gateway: no driver is needed. A commit is one transaction of etcd's."""

from __future__ import annotations

from datetime import timedelta

from solocron.stores.swap.etcd.address import EtcdAddress
from solocron.stores.swap.etcd.keys import EtcdKeys
from solocron.stores.swap.store import SwapStore
from solocron.stores.url import StoreUrl

__all__ = ["EtcdStore"]


class EtcdStore(SwapStore):
    """One client of a namespace in etcd."""

    def __init__(
        self, parts: StoreUrl, *, namespace: str = "default", lease: timedelta = timedelta(seconds=15)
    ) -> None:
        # A commit and the question for its lost reply both fit into a third of the lease.
        timeout = min(5.0, max(lease.total_seconds() / 6, 0.05))
        keys = EtcdKeys(EtcdAddress.of(parts, timeout=timeout), namespace)
        super().__init__(keys, namespace=namespace, lease=lease)
