"""Firebase Realtime Database: a namespace is a commit chain of strings below a path. No driver is needed."""

from __future__ import annotations

from datetime import timedelta

from solocron.stores.swap.chain.firebase.address import FirebaseAddress
from solocron.stores.swap.chain.firebase.strings import FirebaseStrings
from solocron.stores.swap.chain.keys import ChainKeys
from solocron.stores.swap.store import SwapStore
from solocron.stores.url import StoreUrl

__all__ = ["FirebaseStore"]


class FirebaseStore(SwapStore):
    """One client of a namespace in a database."""

    def __init__(
        self, parts: StoreUrl, *, namespace: str = "default", lease: timedelta = timedelta(seconds=15)
    ) -> None:
        # A commit, the question for its lost reply and one repetition all fit into a third of the lease.
        timeout = min(5.0, max(lease.total_seconds() / 9, 0.05))
        keys = ChainKeys(FirebaseStrings(FirebaseAddress.of(parts, timeout=timeout)), namespace, patience=timeout)
        super().__init__(keys, namespace=namespace, lease=lease)
