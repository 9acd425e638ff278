"""The way of one store to its connections: a stock, which other stores may use too, and new ones where it is empty.

A connection whose call was interrupted or failed is discarded, never used again. Where even an unused copy of a
connection would do harm in the child of a fork, `pause` ends the calls and closes everything before it.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from solocron.stores.stock import Stock, StockedLink, bequeath

__all__ = ["Lendable", "Pool"]


class Lendable(StockedLink, Protocol):
    """A connection that one store after another may use."""

    fresh: bool
    """Whether it has not been used yet."""

    def lend(self, count: Callable[[str], None]) -> None:
        """Count its statements for the store that uses it now."""
        ...

    def back(self) -> None:
        """Forget the store that has used it."""
        ...


L = TypeVar("L", bound=Lendable)


class Pool(Generic[L]):
    """The connections of one store in one process. `lent` is told of each that the store gets."""

    def __init__(self, connect: Callable[[], L], *, stock: Stock[L], lent: Callable[[L], None]) -> None:
        self._connect = connect
        self._stock = stock
        self._lent = lent
        self._begin()

    def _begin(self) -> None:
        self._users: Counter[int] = Counter()
        self._paused = False
        self._mutex = threading.Lock()
        self._ended = threading.Condition(self._mutex)
        self._process = os.getpid()

    @contextmanager
    def link(self, *, renews: bool = False) -> Iterator[L]:
        """A connection for one call; given back only if the call went well. `renews`: it renews a session."""
        if self._process != os.getpid():
            self.forked()
        process = self._process
        link = self._take(renews)
        try:
            yield link
        except BaseException:
            if process == os.getpid():
                link.discard()
                self._call_ended()
            else:
                bequeath(link)  # forked inside a call: it is not ours to close
            raise
        self._give_back(link, process, renews=renews)

    def close(self) -> None:
        """Leave the stock: what lies idle there is closed with the last store, and what is in use as it comes back."""
        self._stock.leave(self)

    # --- around a fork

    def pause(self, timeout: float) -> None:
        """Let the calls of all other threads end, and begin none; then close what lies idle."""
        if not self._mutex.acquire(timeout=timeout):
            return
        try:
            self._paused = True
            self._ended.wait_for(lambda: not self._others(), timeout)
        finally:
            self._mutex.release()
        self._stock.drop()

    def resume(self) -> None:
        """Go on in the parent after a fork."""
        with self._mutex:
            self._paused = False
            self._ended.notify_all()

    def forked(self) -> None:
        """Begin anew in the child of a fork; a thread that does not exist here may have held the old mutex."""
        self._begin()

    def _others(self) -> bool:
        return any(user != threading.get_ident() for user in self._users)

    # --- taking and giving

    def _take(self, renews: bool) -> L:
        me = threading.get_ident()
        with self._mutex:
            # A thread that is inside a call already is waited for, and must be able to end it.
            self._ended.wait_for(lambda: not self._paused or me in self._users)
            self._users[me] += 1
        try:
            link = self._stock.take(self, renews=renews) or self._connect()
            self._lent(link)
        except BaseException:
            self._call_ended()
            raise
        return link

    def _give_back(self, link: L, process: int, *, renews: bool) -> None:
        """A call has ended well; its connection goes to the stock, or is left to the process that made it."""
        if process != os.getpid():  # a call in which the process was forked: the connection is the parent's
            bequeath(link)
            return
        link.fresh = False
        link.back()
        try:
            self._stock.give(link, renews=renews)
        finally:
            self._call_ended()

    def _call_ended(self) -> None:
        with self._mutex:
            me = threading.get_ident()
            self._users[me] -= 1
            if not self._users[me]:
                del self._users[me]
            self._ended.notify_all()
