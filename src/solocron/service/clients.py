"""The clients of a service: one that only reads, and one that writes.

They are two, because a store that has written once reads over a connection that may write. Both have connections of
their own, so that a page that takes long never keeps a node waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from solocron.client import Client

__all__ = ["ServiceClients"]


@dataclass(frozen=True, slots=True)
class ServiceClients:
    """Makes the clients of a service. Making one opens nothing."""

    reading: Callable[[], Client]
    """Return the client for reads, its store open for reading."""
    writing: Callable[[], Client]
    close: Callable[[], None]
    """End the connections; the next request makes new ones."""

    @classmethod
    def of(cls, reading: Client, writing: Client | None = None) -> ServiceClients:
        """Return those that are given. One client for both is right for a store in memory."""

        def opened() -> Client:
            reading.store.open(read_only=True)
            return reading

        def close() -> None:
            reading.store.close()
            if writing is not None:
                writing.store.close()

        return cls(opened, lambda: writing or reading, close)
