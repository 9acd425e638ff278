"""The reference key store: a dictionary, a sorted list of its keys, and a mutex. It dies with its process.

`KeyWorld` is the server; the simulator puts its messages before the same one.
"""

from __future__ import annotations

import secrets
import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

from solocron.clock import SECOND, SystemClock
from solocron.stores.contract import Capabilities, Check, Tier
from solocron.stores.swap.key_store import Condition, Found, Item, KeyLimits, Span, Stale, Swapped, holds
from solocron.stores.swap.layout import NOTIFY

__all__ = ["KeyWorld", "MemoryKeys", "SharedKeys"]

_KEPT = 1_000
"""Notifications that a client can be behind before it is told that it missed some."""


class KeyWorld:
    """The server side: keys with their values and marks. Not safe for threads by itself."""

    def __init__(self) -> None:
        self.identity = secrets.token_hex(8)
        self.revision = 0
        """Mark of the last write; each commit that writes has one of its own."""
        self.items: dict[str, Item] = {}
        self.order: list[str] = []
        self.notified: list[tuple[int, str]] = []

    def fetch(self, keys: Sequence[str], spans: Sequence[Span]) -> Found:
        items = {key: self.items[key] for key in keys if key in self.items}
        return Found(items, [self._page(span) for span in spans], self.identity)

    def _page(self, span: Span) -> list[Item]:
        first, end = bisect_left(self.order, span.low), bisect_left(self.order, span.high)
        keys = self.order[first:end]
        if span.reverse:
            keys.reverse()
        found = [self.items[key] for key in keys[: span.limit]]
        return [item._replace(value="") for item in found] if span.bare else found

    def commit(
        self,
        checks: Mapping[str, Condition],
        writes: Mapping[str, str | None],
        look: str | None = None,
        also: str | None = None,
    ) -> Swapped | Stale:
        stale = frozenset(key for key, condition in checks.items() if not self._holds(key, condition))
        if stale:
            return Stale(stale)
        found = None if look is None else self._has(look)
        marks: dict[str, Hashable] = {}
        if writes:
            self.revision += 1
        for key, value in writes.items():
            self._write(key, value)
            if value is not None:
                marks[key] = self.revision
        if also is None:
            return Swapped(marks, found)
        return Swapped(marks, found, self.items.get(also), self.identity)

    def _holds(self, key: str, condition: Condition) -> bool:
        item = self.items.get(key)
        return holds(condition, None if item is None else item.mark)

    def _has(self, prefix: str) -> bool:
        first = bisect_left(self.order, prefix)
        return first < len(self.order) and self.order[first].startswith(prefix)

    def _write(self, key: str, value: str | None) -> None:
        if value is None:
            if self.items.pop(key, None) is not None:
                del self.order[bisect_left(self.order, key)]
            return
        if key not in self.items:
            insort(self.order, key)
        self.items[key] = Item(key, value, self.revision)
        if key == NOTIFY:
            self.notified = [*self.notified[-_KEPT:], (self.revision, value)]

    def news(self, after: int) -> tuple[int, list[str | None]]:
        """Return the values of `notify` since a revision, and the last revision."""
        missed = [None] if len(self.notified) > _KEPT and self.notified[0][0] > after else []
        return self.revision, [*missed, *(value for revision, value in self.notified if revision > after)]


class SharedKeys:
    """What the clients of one memory key store share: a world for each namespace, a mutex, and the time."""

    def __init__(self, clock: Callable[[], int] | None = None) -> None:
        system = SystemClock()
        offset = system.wall() - int(system.boot() * SECOND)
        self.worlds: dict[str, KeyWorld] = {}
        self.identity = secrets.token_hex(8)
        # Boot time, set by the wall clock once: a step of the wall clock moves nothing.
        self.clock = clock or (lambda: offset + int(system.boot() * SECOND))
        self.condition = threading.Condition()

    def of(self, namespace: str) -> KeyWorld:
        with self.condition:
            if namespace not in self.worlds:
                self.worlds[namespace] = world = KeyWorld()
                world.identity = self.identity
            return self.worlds[namespace]


class MemoryKeys:
    """One client of a memory key store."""

    def __init__(
        self,
        shared: SharedKeys | None = None,
        namespace: str = "default",
        *,
        limits: KeyLimits | None = None,
        tells: bool = True,
    ) -> None:
        """`tells`: whether a stale commit names the keys, and a commit sees what it looks for."""
        self.shared = shared or SharedKeys()
        self.namespace = namespace
        self.limits = limits or KeyLimits(keys=128, bytes=1_500_000, value=1_000_000)
        self._tells = tells
        self._closed = False

    @property
    def url(self) -> str:
        return "keys://memory"

    @property
    def capabilities(self) -> Capabilities:
        why = "one process, one mutex; nothing outlives the process"
        return Capabilities(tier=Tier.A, why=why, notifies=True, shared=False)

    @property
    def world(self) -> KeyWorld:
        """Return the keys of this namespace."""
        return self.shared.of(self.namespace)

    def open(self) -> None:
        self._closed = False

    def close(self) -> None:
        with self.shared.condition:
            self._closed = True
            self.shared.condition.notify_all()

    def fetch(self, keys: Sequence[str], spans: Sequence[Span] = ()) -> Found:
        with self.shared.condition:
            return self.world.fetch(keys, spans)

    def commit(
        self,
        checks: Mapping[str, Condition],
        writes: Mapping[str, str | None],
        *,
        look: str | None = None,
        also: str | None = None,
        server: str | None = None,
    ) -> Swapped | Stale:
        with self.shared.condition:
            if server is not None and server != self.world.identity:
                return Stale(frozenset(), moved=True)
            reply = self.world.commit(checks, writes, *((look, also) if self._tells else ()))
            if isinstance(reply, Stale):
                return reply if self._tells else Stale()
            if NOTIFY in writes:
                self.shared.condition.notify_all()
            return reply

    def now(self) -> int:
        return self.shared.clock()

    def sharpen(self, within: int) -> None:
        """Do nothing: the time is exact."""

    def ask_time(self) -> str:
        return self.world.identity

    def position(self) -> int:
        with self.shared.condition:
            return self.world.revision

    def wait(self, after: int, timeout: float) -> tuple[int, Sequence[str | None]]:
        world = self.world
        with self.shared.condition:
            self.shared.condition.wait_for(lambda: self._closed or world.news(after)[1], timeout)
            return (after, []) if self._closed else world.news(after)

    def checks(self) -> Sequence[Check]:
        return [Check("store", "WARN", f"{self.url} lives and dies with this process", "take a server that lasts")]

    def namespaces(self) -> Collection[str]:
        return [name for name, world in self.shared.worlds.items() if world.items]
