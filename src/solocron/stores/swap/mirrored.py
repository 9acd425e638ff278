"""A key store whose reads are answered by a mirror: what NATS and ZooKeeper have in common."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol

from solocron.errors import StoreError
from solocron.stores.swap.key_store import Condition, Found, Span, Swapped
from solocron.stores.swap.mirror import Mirror
from solocron.stores.swap.server_time import ServerTime

__all__ = ["MirroredKeys"]


class _Source(Protocol):
    """The connection of one client, and the mirror that it feeds."""

    time: ServerTime
    server: str

    @property
    def url(self) -> str: ...

    @property
    def mirror(self) -> Mirror: ...

    def connection(self, *, make: bool = False) -> object: ...

    def barrier(self) -> None: ...

    def close(self) -> None: ...


class MirroredKeys:
    """Reads of one client of a namespace; the store adds its commits."""

    def __init__(self, source: _Source) -> None:
        self._source = source
        self._closed = False

    @property
    def url(self) -> str:
        return self._source.url

    def open(self) -> None:
        self._closed = False
        self._source.connection()

    def close(self) -> None:
        self._closed = True
        self._source.mirror.reach(0)  # wakes a thread that waits
        self._source.close()

    def fetch(self, keys: Sequence[str], spans: Sequence[Span] = ()) -> Found:
        for key in keys:
            key.encode()  # a key that cannot be sent is not there, and must not look so
        self._source.barrier()
        return self._source.mirror.fetch(keys, spans, self._source.server)

    def _stale(self, checks: Mapping[str, Condition]) -> frozenset[str]:
        """Return the checks that certainly do not hold.

        The mirror may be behind, so it is brought up to date first. Where all of them hold, a key has changed that is
        not compared: that is no conflict, and the commit is sent again.
        """
        self._source.barrier()
        return frozenset(key for key, condition in checks.items() if not self._source.mirror.holds(key, condition))

    def _seen(self, marks: Mapping[str, Hashable], look: str | None, also: str | None) -> Swapped:
        """Return the reply of a commit that is made, with what was to be read on the way, if the mirror can tell."""
        if look is None and also is None:
            return Swapped(marks)
        try:
            self._source.barrier()
        except StoreError:
            return Swapped(marks)
        return self._source.mirror.seen(marks, look, also, self._source.server)

    def now(self) -> int:
        return self._source.time.now() if self._source.time.is_known else 0

    def ask_time(self) -> str:
        raise NotImplementedError

    def sharpen(self, within: int) -> None:
        """Ask once if what was told last is too long ago: both servers tell milliseconds, or better."""
        if not self._source.time.is_known or self._source.time.width > within:
            self.ask_time()
