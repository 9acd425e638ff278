"""Feeds a mirror from one connection: watches the nodes of a namespace, and reads those that have changed."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator, Sequence

from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.swap.key_store import Lost
from solocron.stores.swap.mirror import Mirror
from solocron.stores.swap.zookeeper import jute
from solocron.stores.swap.zookeeper.address import ZooAddress
from solocron.stores.swap.zookeeper.connection import ZooConnection, ZooReply
from solocron.stores.swap.zookeeper.jute import Operation, Reader, Stat

__all__ = ["ZooFeed", "mark_of", "place_of"]

_AT_ONCE = 400
"""Nodes that one call reads."""
_UNIMPLEMENTED = -6


def mark_of(generation: str, version: int) -> str:
    return f"{generation}.{version}"


def place_of(mark: object) -> tuple[str, int]:
    """Return generation and version of a mark."""
    generation, _, version = str(mark).rpartition(".")
    return generation, int(version)


class ZooFeed:
    """The feed of one connection; it ends with it."""

    def __init__(self, address: ZooAddress, connection: ZooConnection, keys: str, notify: str) -> None:
        self.connection = connection
        self.mirror = Mirror()
        self.notifications: int | None = None
        """Version of the last notification that was read."""
        self._address = address
        self._keys, self._notify = keys, notify
        self._depth = keys.count("/") + 3
        self._mutex = threading.Lock()
        self._changed: dict[str, None] = {}
        """Nodes that have changed and are not asked for yet; only the reading thread touches it."""
        self._asked = self._answered = 0
        self._waiting: list[tuple[int, threading.Event]] = []

    # --- the beginning

    def begin(self, notifications: int | None) -> None:
        """Watch the namespace, then read everything; what changes in between is read again."""
        self.notifications = notifications
        self.connection.follow(self)
        for path in (self._keys, self._notify):
            error = self.request(jute.watch(path)).error
            if error != jute.OK:
                older = "it is older than 3.6" if error == _UNIMPLEMENTED else f"error {error}"
                raise StoreRefused(
                    f"{self._address.parts.masked} cannot watch a folder ({older}); no job was touched. Upgrade "
                    "ZooKeeper to 3.6 or later."
                )
        self._read([self._notify])
        for some in _parts(self._below(self._below([self._keys]))):
            self._read(self._below(some))

    def request(self, operation: Operation) -> ZooReply:
        """Make a call that does no harm if it is made twice."""
        try:
            return self.connection.call(operation)
        except Lost as error:
            raise StoreUnavailable(
                f"{self._address.parts.masked} did not reply: {error}; no job was touched."
            ) from None

    def _below(self, paths: Sequence[str]) -> list[str]:
        """Return the children of nodes."""
        found: list[str] = []
        for some in _parts(paths):
            reply = self.request(Operation(jute.MULTI_READ, jute.multi([jute.children(one) for one in some])))
            names = jute.read_results(reply.content, Reader.texts)
            found += [f"{path}/{name}" for path, below in zip(some, names, strict=True) for name in below or ()]
        return found

    def _read(self, paths: Sequence[str]) -> None:
        """Bring nodes into the mirror, and wait for that."""
        done = threading.Event()
        self._ask(paths)
        with self._mutex:
            self._wait_for(self._asked, done)
        if not done.wait(self._address.timeout):
            self.connection.give_up()
            raise StoreUnavailable(f"{self._address.parts.masked} sends no nodes; no job was touched.")

    # --- following

    def _ask(self, paths: Sequence[str]) -> None:
        for some in _parts(paths):
            operation = Operation(jute.MULTI_READ, jute.multi([jute.get(path) for path in some]))
            with self._mutex:
                self._asked += 1
            self.connection.send(operation, lambda reply, some=some: self._nodes_arrived(some, reply))  # type: ignore[misc]

    def _nodes_arrived(self, paths: Sequence[str], reply: ZooReply | None) -> None:
        if reply is None:
            return
        self._apply(paths, reply)
        with self._mutex:
            self._answered += 1
            self._wake()

    def on_event(self, path: str) -> None:
        """Note a change. A deletion is asked for too: only that is certain to come after an older reply."""
        self._changed[path] = None

    def on_idle(self) -> None:
        """Ask for what has changed, all of it in one call."""
        if self.connection.broken.is_set():
            self.mirror.reach(0)  # wakes a thread that waits for notifications
            return
        if self._changed:
            # Above a value there are only folders, which have nothing to read.
            paths = [path for path in self._changed if path == self._notify or path.count("/") == self._depth]
            self._changed = {}
            self._ask(paths)
            with self._mutex:
                self._wake()

    def _apply(self, paths: Sequence[str], reply: ZooReply) -> None:
        """Put nodes into the mirror; on the reading thread."""
        for path, node in zip(paths, jute.read_results(reply.content, _node), strict=True):
            if path == self._notify:
                if node is not None:
                    self._notified(*node)
                continue
            *_, word, generation = path.split("/")
            key = base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)).decode()
            if node is not None:
                data, stat = node
                mark = mark_of(generation, stat.version)
                self.mirror.put(key, data.decode(errors="replace"), stat.modified_in, mark)
            elif (item := self.mirror.items.get(key)) is not None and place_of(item.mark)[0] == generation:
                self.mirror.delete(key, reply.seen)

    def _notified(self, data: bytes, stat: Stat) -> None:
        last, self.notifications = self.notifications, stat.version
        if last is not None and stat.version > last + 1:
            self.mirror.notify(None, stat.modified_in)
        if last != stat.version:
            self.mirror.notify(data.decode(errors="replace"), stat.modified_in)

    # --- up to now

    def catch_up(self, done: threading.Event) -> None:
        """Have an event set when all that has been told of is in the mirror; on the reading thread."""
        with self._mutex:
            unread = any(path == self._notify or path.count("/") == self._depth for path in self._changed)
            self._wait_for(self._asked + unread, done)

    def _wait_for(self, answered: int, done: threading.Event) -> None:
        self._waiting.append((answered, done))
        self._wake()

    def _wake(self) -> None:
        for one in [one for one in self._waiting if one[0] <= self._answered]:
            self._waiting.remove(one)
            one[1].set()


def _node(reader: Reader) -> tuple[bytes, Stat]:
    return reader.buffer(), reader.stat()


def _parts(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(paths), _AT_ONCE):
        yield paths[start : start + _AT_ONCE]
