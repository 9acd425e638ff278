"""Idle connections of one process to one server. Stores that would make the same connections use one stock of them.

So many namespaces in one process, such as a scheduler for each tenant, need hardly more connections than one. A call
never waits for a connection: a store that finds none here makes a new one. Renewals have connections of their own,
which no other call takes: neither another tenant's work nor a server that has no connection left costs a lease. They
lend them to each other, because a renewal takes milliseconds.

What has lain idle for a minute is closed when the next call ends, except the last one and, for renewals, one, or two
where there are several stores. The last store that leaves closes everything.

A fork gets a stock of its own; the parent's connections are neither used nor closed in the child, because to close one
would end it for the parent.
"""

from __future__ import annotations

import os
import selectors
import threading
import time
from collections.abc import Hashable
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet, WeakValueDictionary

from solocron.stores import forking

__all__ = ["Stock", "StockedLink", "bequeath", "has_spoken", "stock_of"]

IDLE_FOR = 60.0
"""Seconds after which an idle connection is closed."""

# Not `select`, which refuses descriptors above 1,023; only Windows, where it has no such limit, lacks `poll`.
_Look: type[selectors.BaseSelector] = getattr(selectors, "PollSelector", selectors.SelectSelector)


class StockedLink(Protocol):
    """One connection. While it lies idle it knows nothing of the store that made it."""

    def is_stale(self) -> bool: ...

    def close(self) -> None: ...

    def discard(self) -> None: ...


L = TypeVar("L", bound=StockedLink)


class Stock(Generic[L]):
    """Idle connections that are all alike. `keep`: at most so many for each store that uses them."""

    def __init__(self, *, keep: int) -> None:
        self.drops = 0
        """How often everything was closed because it led to the wrong server."""
        self._keep = keep
        self._begin()
        forking.watch(self)

    def _begin(self) -> None:
        self._idle: list[tuple[L, float]] = []
        """Each with the moment at which it was given back: the first has lain longest."""
        self._renewing: list[tuple[L, float]] = []
        self._users: WeakSet[object] = WeakSet()
        self._mutex = threading.Lock()
        self._process = os.getpid()

    def take(self, user: object, *, renews: bool = False) -> L | None:
        """Return a connection that looks alive, or None; from now on `user` is one of those who use the stock."""
        if self._process != os.getpid():  # forked by a host that does not tell Python
            self.forked()
        while True:
            with self._mutex:
                self._users.add(user)
                kind = self._renewing if renews and self._renewing else self._idle
                link = kind.pop()[0] if kind else None
            if link is None or not _is_stale(link):
                return link
            link.discard()

    def give(self, link: L, *, renews: bool = False) -> None:
        """Keep a connection whose call went well, or close it; close what has lain idle for too long."""
        now = time.monotonic()
        unwanted = [link]
        with self._mutex:
            users = len(self._users)
            kind = self._renewing if renews and len(self._renewing) < users else self._idle
            if len(kind) < (users if kind is self._renewing else users * self._keep):
                kind.append((unwanted.pop(), now))
            unwanted += _outdated(self._idle, 1, now) + _outdated(self._renewing, min(users, 2), now)
        for each in unwanted:
            each.close()

    def leave(self, user: object) -> None:
        """Say that a store is closed, until it takes a connection again; the last one closes what lies idle."""
        with self._mutex:
            self._users.discard(user)
            idle = [] if self._users else self._empty()
        for link in idle:
            link.close()

    def drop(self) -> None:
        """Close what lies idle, for every user of the stock."""
        with self._mutex:
            self.drops += 1
            idle = self._empty()
        for link in idle:
            link.close()

    def _empty(self) -> list[L]:
        idle = [link for link, _ in (*self._idle, *self._renewing)]
        self._idle, self._renewing = [], []
        return idle

    # --- around a fork

    def before_fork(self) -> None:
        """Nothing: a copy of an idle connection does no harm as long as the child leaves it alone."""

    def after_fork(self) -> None:
        """Nothing, as before it."""

    def forked(self) -> None:
        """Begin anew in the child; a thread that does not exist here may have held the old mutex."""
        bequeath(*self._empty())
        self._begin()


def _outdated(links: list[tuple[L, float]], least: int, now: float) -> list[L]:
    """Those that have lain for too long, taken out, as long as `least` are left."""
    found = []
    while len(links) > least and now - links[0][1] > IDLE_FOR:
        found.append(links.pop(0)[0])
    return found


def has_spoken(descriptor: int) -> bool:
    """Return whether a socket can be read, or is at its end, without waiting."""
    with _Look() as look:
        look.register(descriptor, selectors.EVENT_READ)
        return bool(look.select(0))


def _is_stale(link: StockedLink) -> bool:
    """Whether an idle connection has died. One that cannot even be looked at is replaced: that is never fatal."""
    try:
        return link.is_stale()
    except Exception:  # noqa: BLE001 - whatever a driver raises here, a new connection will tell what is wrong
        return True


# --- the stocks of this process

_parents: list[Any] = []


def bequeath(*links: Any) -> None:
    """Keep connections of a parent process, so that nothing closes them in the child."""
    _parents.extend(links)


class _Stocks:
    """The stocks that stores of this process share, for as long as a store has one."""

    def __init__(self) -> None:
        self._by_key: WeakValueDictionary[Hashable, Stock[Any]] = WeakValueDictionary()
        self._mutex = threading.Lock()
        forking.watch(self)

    def of(self, key: Hashable, keep: int) -> Stock[Any]:
        with self._mutex:
            stock = self._by_key.get(key)
            if stock is None:
                stock = self._by_key[key] = Stock(keep=keep)
            return stock

    def before_fork(self) -> None:
        """Do nothing: a caller that has the mutex does not keep it."""

    def after_fork(self) -> None:
        """Nothing, as before it."""

    def forked(self) -> None:
        """Keep the stocks, which begin anew themselves; a thread that is gone may have held the mutex."""
        self._mutex = threading.Lock()


_stocks = _Stocks()


def stock_of(key: Hashable | None, *, keep: int) -> Stock[Any]:
    """Return the stock of the connections that this key describes; without a key, one that no other store has."""
    return Stock(keep=keep) if key is None else _stocks.of(key, keep)
