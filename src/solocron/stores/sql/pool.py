"""Connections, last used first. One whose call was interrupted or failed is discarded, never used again.

There is no upper limit: a renewal must never wait until a slow claim gives a connection back. Renewals keep one for
themselves, which no other call takes: a server that has none left to give costs no lease. What has lain idle for a
minute is closed, except the last one, when the next call ends; a node makes one with every beat.

A fork gets connections of its own; the parent's are neither used nor closed in the child, because closing would say
goodbye in the parent's name. Where even an unused copy would do harm, `pause` ends the calls and closes everything
before the fork.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
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

IDLE_FOR = 60.0
"""Seconds after which an idle connection is closed."""

_parents: list[Any] = []


class Pool(Generic[L]):
    """The connections of one store in one process."""

    def __init__(self, connect: Callable[[], L], *, keep: int = 4) -> None:
        self._connect = connect
        self._keep = keep
        self._idle: list[tuple[L, float]] = []
        """Each with the moment at which it was given back: the first has lain longest."""
        self._renewing: L | None = None
        """The connection of the renewals, while it is idle."""
        self._users: Counter[int] = Counter()
        self._paused = False
        self._mutex = threading.Lock()
        self._ended = threading.Condition(self._mutex)
        self._process = os.getpid()

    @contextmanager
    def link(self, *, renews: bool = False) -> Iterator[L]:
        """A connection for one call; given back only if the call went well. `renews`: it writes a session."""
        process = self._process
        link = self._take(renews)
        try:
            yield link
        except BaseException:
            if process == os.getpid():
                link.discard()
            else:
                bequeath(link)  # forked inside a call: it is not ours to close
            self._give_back(None, process)
            raise
        link.fresh = False
        self._give_back(link, process, renews=renews)

    def close(self) -> None:
        """Close what lies idle; what is in use is closed when it comes back to a full pool, or kept for later."""
        with self._mutex:
            idle = self._empty()
        for link in idle:
            link.close()

    # --- around a fork

    def pause(self, timeout: float) -> None:
        """Let the calls of all other threads end, and begin none; then close what lies idle."""
        if not self._mutex.acquire(timeout=timeout):
            return
        try:
            self._paused = True
            self._ended.wait_for(lambda: not self._others(), timeout)
            idle = self._empty()
        finally:
            self._mutex.release()
        for link in idle:
            link.close()

    def resume(self) -> None:
        """The fork is over; go on in the parent."""
        with self._mutex:
            self._paused = False
            self._ended.notify_all()

    def forked(self) -> None:
        """We are the child of a fork: leave the parent's connections and locks alone."""
        bequeath(*self._empty())
        self._users = Counter()
        self._paused = False
        self._mutex = threading.Lock()  # a thread that does not exist in the child may have held the old one
        self._ended = threading.Condition(self._mutex)
        self._process = os.getpid()

    def _others(self) -> bool:
        return any(user != threading.get_ident() for user in self._users)

    # --- taking and giving

    def _empty(self) -> list[L]:
        """Everything that lies idle, taken out."""
        idle = [link for link, _ in self._idle] + ([] if self._renewing is None else [self._renewing])
        self._idle, self._renewing = [], None
        return idle

    def _take(self, renews: bool = False) -> L:
        me = threading.get_ident()
        with self._mutex:
            # Whoever is inside a call already is waited for, and must be able to end it.
            self._ended.wait_for(lambda: not self._paused or me in self._users)
            self._users[me] += 1
        try:
            while True:
                with self._mutex:
                    link = self._pick(renews)
                if link is None:
                    return self._connect()
                if not _is_stale(link):
                    return link
                link.discard()
        except BaseException:
            self._give_back(None)
            raise

    def _pick(self, renews: bool) -> L | None:
        if renews and self._renewing is not None:
            link, self._renewing = self._renewing, None
            return link
        return self._idle.pop()[0] if self._idle else None

    def _give_back(self, link: L | None, process: int | None = None, *, renews: bool = False) -> None:
        """A call has ended; what is left of its connection is kept, closed, or left to the process that made it."""
        if (
            process or self._process
        ) != os.getpid():  # a call in which the process was forked: the connection is the parent's
            bequeath(link)
            return
        with self._mutex:
            me = threading.get_ident()
            self._users[me] -= 1
            if not self._users[me]:
                del self._users[me]
            self._ended.notify_all()
            now = time.monotonic()
            if link is not None and renews and self._renewing is None:
                self._renewing, link = link, None
            elif link is not None and len(self._idle) < self._keep:
                self._idle.append((link, now))
                link = None
            unwanted = [] if link is None else [link]
            while len(self._idle) > 1 and now - self._idle[0][1] > IDLE_FOR:
                unwanted.append(self._idle.pop(0)[0])
        for each in unwanted:
            each.close()


def _is_stale(link: Link) -> bool:
    """Whether an idle connection has died. One that cannot even be looked at is replaced: that is never fatal."""
    try:
        return link.is_stale()
    except Exception:  # noqa: BLE001 - whatever a driver raises here, a new connection will tell what is wrong
        return True


def bequeath(*links: Any) -> None:
    """Keep connections of a parent process, so that nothing closes them in the child."""
    _parents.extend(links)
