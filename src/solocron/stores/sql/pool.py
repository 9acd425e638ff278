"""Connections, last used first. One whose call was interrupted or failed is discarded, never used again.

There is no upper limit: a renewal must never wait until a slow claim gives a connection back. A fork gets connections
of its own; the parent's are neither used nor closed in the child, because closing would say goodbye in the parent's
name.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["Link", "Pool", "bequeath"]


class Link(Protocol):
    """One connection."""

    fresh: bool
    """Whether it has not been used yet."""

    def is_stale(self) -> bool: ...

    def close(self) -> None: ...

    def discard(self) -> None: ...


L = TypeVar("L", bound=Link)

_parents: list[Any] = []


class Pool(Generic[L]):
    """The connections of one store in one process."""

    def __init__(self, connect: Callable[[], L], *, keep: int = 4) -> None:
        self._connect = connect
        self._keep = keep
        self._idle: list[L] = []
        self._mutex = threading.Lock()
        self._process = os.getpid()

    @contextmanager
    def link(self) -> Iterator[L]:
        """A connection for one call; given back only if the call went well."""
        link = self._take()
        try:
            yield link
        except BaseException:
            link.discard()
            raise
        link.fresh = False
        self._give_back(link)

    def close(self) -> None:
        """Close what lies idle; what is in use is closed when it comes back to a full pool, or kept for later."""
        with self._mutex:
            idle, self._idle = self._idle, []
        for link in idle:
            link.close()

    def forked(self) -> None:
        """We are the child of a fork: leave the parent's connections alone."""
        bequeath(*self._idle)
        self._idle = []
        self._mutex = threading.Lock()
        self._process = os.getpid()

    def _take(self) -> L:
        while True:
            with self._mutex:
                link = self._idle.pop() if self._idle else None
            if link is None:
                return self._connect()
            if not link.is_stale():
                return link
            link.discard()

    def _give_back(self, link: L) -> None:
        if self._process == os.getpid():
            with self._mutex:
                if len(self._idle) < self._keep:
                    self._idle.append(link)
                    return
        link.close()


def bequeath(*links: Any) -> None:
    """Keep connections of a parent process, so that nothing closes them in the child."""
    _parents.extend(links)
