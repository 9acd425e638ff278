"""A connection over HTTP that is kept between calls: what etcd and the object services have in common."""

from __future__ import annotations

from http.client import HTTPConnection

from solocron.stores.stock import has_spoken

__all__ = ["HttpWire"]


class HttpWire:
    """One connection."""

    def __init__(self, connection: HTTPConnection) -> None:
        self.connection = connection

    def is_stale(self) -> bool:
        """Return whether the other side has closed it, or sent what no call waited for."""
        sock = self.connection.sock
        return sock is None or has_spoken(sock.fileno())

    def close(self) -> None:
        self.connection.close()

    def discard(self) -> None:
        self.connection.close()
