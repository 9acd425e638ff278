"""ZooKeeper as a key store: a commit is one transaction of checks, creations, writes and deletions of nodes."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from solocron.errors import StoreRefused
from solocron.stores.contract import Capabilities, Check
from solocron.stores.swap.key_store import ABSENT, EXISTS, Condition, KeyLimits, Stale, Swapped
from solocron.stores.swap.layout import NOTIFY, is_derived
from solocron.stores.swap.mirror import Mirror
from solocron.stores.swap.mirrored import MirroredKeys
from solocron.stores.swap.zookeeper import jute
from solocron.stores.swap.zookeeper.address import ZooAddress
from solocron.stores.swap.zookeeper.checks import CAPABILITIES, checks_of
from solocron.stores.swap.zookeeper.feed import ZooFeed, mark_of, place_of
from solocron.stores.swap.zookeeper.jute import Operation
from solocron.stores.swap.zookeeper.tree import ZooTree

__all__ = ["ZooKeys"]

_LIMITS = KeyLimits(keys=250, bytes=850_000, value=850_000)
"""A call may have a megabyte (jute.maxbuffer); a key takes up to two operations with its path in each."""
_TRIES = 8
"""How often a commit is sent again that only met a change of a key which it does not compare."""
_NOT_NOW = (jute.NO_NODE, jute.NODE_EXISTS, jute.BAD_VERSION)


class ZooKeys(MirroredKeys):
    """One client of a namespace of keys."""

    limits = _LIMITS
    capabilities: Capabilities = CAPABILITIES

    def __init__(self, address: ZooAddress, namespace: str) -> None:
        self._address = address
        self._tree = ZooTree(address, namespace)
        super().__init__(self._tree)

    # --- writing

    def commit(
        self,
        checks: Mapping[str, Condition],
        writes: Mapping[str, str | None],
        *,
        look: str | None = None,
        also: str | None = None,
        server: str | None = None,
    ) -> Swapped | Stale:
        tree = self._tree
        writes = {key: value for key, value in writes.items() if not is_derived(key)}
        for _ in range(_TRIES):
            feed = tree.feed(make=True)
            if server is not None and tree.server != server:
                return Stale(frozenset(), moved=True)
            plan = _Plan(tree, feed.mirror)
            for key in checks.keys() | writes.keys():
                plan.add(key, checks.get(key), key in writes, writes.get(key))
            if not plan.unknown:
                marks = self._sent(feed, plan)
                if marks is not None:
                    return self._seen(marks, look, also)
            if stale := self._stale(checks):
                return Stale(stale)
        return Stale()

    def _sent(self, feed: ZooFeed, plan: _Plan) -> dict[str, str] | None:
        """Send a transaction; return the new marks, or None if it did nothing."""
        tree = self._tree
        sent = tree.time.begin_call()
        operations = [*plan.operations, jute.set_data(tree.clock, b"")]
        reply = feed.connection.call(Operation(jute.MULTI, jute.multi(operations)))
        if reply.error == jute.OK:
            stats, errors = jute.multi_results(reply.content)
        else:
            stats, errors = [], [reply.error]
        wrong = next((error for error in errors if error != jute.OK), jute.OK)
        if wrong in _NOT_NOW:
            return None
        if wrong != jute.OK:
            raise StoreRefused(f"{tree.url} refused a commit (error {wrong}); nothing was written.")
        clock = stats[-1]
        assert clock is not None
        tree.observe(clock, sent)
        for key, (place, generation) in plan.written.items():
            stat = stats[place]
            assert stat is not None
            plan.marks[key] = mark_of(generation, stat.version)
        return plan.marks

    # --- time, notifications, looking after

    def ask_time(self) -> str:
        self._tree.ask_time()
        return self._tree.server

    def position(self) -> int:
        self._tree.connection(make=True)  # a client that listens needs a node, also before anything is written
        self._tree.barrier()
        return self._tree.mirror.notified

    def wait(self, after: int, timeout: float) -> tuple[int, Sequence[str | None]]:
        feed = self._tree.feed(make=True)
        return feed.mirror.news(after, timeout, lambda: self._closed or feed.connection.broken.is_set())

    def checks(self) -> Sequence[Check]:
        return list(checks_of(self._tree))

    def namespaces(self) -> Collection[str]:
        found = self._tree.children(self._address.prefix)
        return [name.replace("~", ".") for name in found if name != "identity"]


class _Plan:
    """The operations of a commit, built on what the mirror knows; the server decides whether they hold."""

    def __init__(self, tree: ZooTree, mirror: Mirror) -> None:
        self.operations: list[Operation] = []
        self.marks: dict[str, str] = {}
        self.written: dict[str, tuple[int, str]] = {}
        """Keys whose new versions the reply tells: the place of the operation, and the generation."""
        self.unknown = False
        """Whether a key has to be there that the mirror does not know."""
        self._tree, self._mirror = tree, mirror
        self._create = partial(jute.create, private=tree.private)

    def add(self, key: str, condition: Condition | None, writes: bool, value: str | None) -> None:
        """Add a check, a write, or both of one key."""
        if key == NOTIFY and writes and condition is None:
            self.operations.append(jute.set_data(self._tree.notify, (value or "").encode()))
            return
        path = self._tree.path(key)
        item = self._mirror.items.get(key)
        if condition is ABSENT or (condition is None and item is None):
            self._add_new(key, path, writes, value)
        elif not writes:
            if condition is EXISTS:
                self.operations.append(jute.check(path))
            else:
                generation, version = place_of(condition)
                self.operations.append(jute.check(f"{path}/{generation}", version))
        elif condition is EXISTS and item is None:
            self.unknown = True
        else:
            compared = condition is not None and condition is not EXISTS
            generation, version = place_of(condition if compared else item.mark)  # type: ignore[union-attr]
            self._add_change(key, f"{path}/{generation}", value, version if compared else -1)

    def _add_new(self, key: str, path: str, writes: bool, value: str | None) -> None:
        """Make a key that is not there; or prove that it is not, which only a creation can."""
        self.operations.append(self._create(path, b""))
        if not writes or value is None:
            self.operations.append(jute.delete(path))
            return
        generation = secrets.token_urlsafe(9)
        self.operations.append(self._create(f"{path}/{generation}", value.encode()))
        self.marks[key] = mark_of(generation, 0)

    def _add_change(self, key: str, path: str, value: str | None, version: int) -> None:
        above, _, generation = path.rpartition("/")
        if value is None:
            self.operations += [jute.delete(path, version), jute.delete(above)]
            return
        self.written[key] = len(self.operations), generation
        self.operations.append(jute.set_data(path, value.encode(), version))
