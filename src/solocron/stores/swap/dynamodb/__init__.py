"""DynamoDB: a namespace is some partitions of a table, and a commit is one of its transactions."""

from __future__ import annotations

from datetime import timedelta

from solocron.stores.swap.dynamodb.address import DynamoAddress
from solocron.stores.swap.dynamodb.keys import DynamoKeys
from solocron.stores.swap.store import SwapStore
from solocron.stores.url import StoreUrl

__all__ = ["DynamoStore"]


class DynamoStore(SwapStore):
    """One client of a namespace in DynamoDB."""

    def __init__(
        self, parts: StoreUrl, *, namespace: str = "default", lease: timedelta = timedelta(seconds=15)
    ) -> None:
        # A commit, its repetition and the question for its lost reply all fit into a third of the lease.
        timeout = min(5.0, max(lease.total_seconds() / 9, 0.05))
        keys = DynamoKeys(DynamoAddress.of(parts, timeout=timeout), namespace)
        super().__init__(keys, namespace=namespace, lease=lease)
