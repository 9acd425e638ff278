"""Kubernetes itself: a namespace of Solocron is a commit chain of ConfigMaps. No driver is needed."""

from __future__ import annotations

from datetime import timedelta

from solocron.stores.swap.chain.keys import ChainKeys
from solocron.stores.swap.chain.kubernetes.address import ClusterAddress
from solocron.stores.swap.chain.kubernetes.config_maps import ConfigMaps
from solocron.stores.swap.store import SwapStore
from solocron.stores.url import StoreUrl

__all__ = ["ConfigMapStore"]


class ConfigMapStore(SwapStore):
    """One client of a namespace in a cluster."""

    def __init__(
        self, parts: StoreUrl, *, namespace: str = "default", lease: timedelta = timedelta(seconds=15)
    ) -> None:
        # A commit, the question for its lost reply and one repetition all fit into a third of the lease.
        timeout = min(5.0, max(lease.total_seconds() / 9, 0.05))
        keys = ChainKeys(ConfigMaps(ClusterAddress.of(parts, timeout=timeout)), namespace, patience=timeout)
        super().__init__(keys, namespace=namespace, lease=lease)
