"""NATS JetStream: a namespace is a stream, a key is a subject, and a commit is an atomic batch of messages."""

from __future__ import annotations

from datetime import timedelta

from solocron.stores.swap.nats.address import NatsAddress
from solocron.stores.swap.nats.keys import NatsKeys
from solocron.stores.swap.store import SwapStore
from solocron.stores.url import StoreUrl

__all__ = ["NatsStore"]


class NatsStore(SwapStore):
    """One client of a namespace in NATS."""

    def __init__(
        self, parts: StoreUrl, *, namespace: str = "default", lease: timedelta = timedelta(seconds=15)
    ) -> None:
        # A commit and the question for its lost reply both fit into a third of the lease.
        timeout = min(5.0, max(lease.total_seconds() / 6, 0.05))
        keys = NatsKeys(NatsAddress.of(parts, timeout=timeout), namespace)
        super().__init__(keys, namespace=namespace, lease=lease)
