"""The nodes of one namespace, and the mirror that is fed by a watch on them.

    <folder>/identity                     a word that names this ensemble and its copies
    <folder>/<namespace>/clock            written to learn the leader's time
    <folder>/<namespace>/notify           the last notification
    <folder>/<namespace>/k/<hash>/<key>/<generation>

A version begins at 0 again when a node is made anew, so the value of a key lies in a child whose name is new each time:
a mark is that name and the version, and never comes a second time. The node of the key itself is there as long as the
key is.
"""

from __future__ import annotations

import base64
import os
import secrets
import threading
from zlib import crc32

from solocron.clock import MILLISECOND
from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.swap.mirror import Mirror
from solocron.stores.swap.server_time import ServerTime, time_of
from solocron.stores.swap.zookeeper import jute
from solocron.stores.swap.zookeeper.address import ZooAddress
from solocron.stores.swap.zookeeper.connection import ZooConnection, ZooReply
from solocron.stores.swap.zookeeper.feed import ZooFeed
from solocron.stores.swap.zookeeper.jute import Operation, Stat

__all__ = ["ZooTree"]

_FOLDERS = 64
"""Over which keys are spread: a list of children has no limit and must stay below a megabyte."""
_BLUNT = 20 * MILLISECOND
"""Doubt about the time from which on a read asks for it on the way."""


class ZooTree:
    """The namespace of one client. Every call makes sure that the connection stands and the mirror is fed."""

    def __init__(self, address: ZooAddress, namespace: str) -> None:
        self.address = address
        self.root = f"{address.prefix}/{namespace.replace('.', '~')}"
        self.clock, self.notify, self._keys = f"{self.root}/clock", f"{self.root}/notify", f"{self.root}/k"
        self.private = address.parts.user is not None
        self.time: ServerTime = time_of(("zookeeper", tuple(sorted(address.hosts))))
        self.begin()

    def begin(self) -> None:
        """Begin anew, as after a fork."""
        self._process = os.getpid()
        self._mutex = threading.RLock()
        self._feed: ZooFeed | None = None
        self.server = ""
        self._there = False
        """Whether the namespace exists and is followed: a client that only looks makes none."""
        self._notifications: int | None = None
        self._nothing = Mirror()

    @property
    def url(self) -> str:
        return self.address.parts.masked

    @property
    def mirror(self) -> Mirror:
        feed = self._feed
        return self._nothing if feed is None else feed.mirror

    # --- connection

    def connection(self, *, make: bool = False) -> ZooConnection:
        """Return the connection, made anew if it broke, and feed the mirror by it; `make` what is missing."""
        return self.feed(make=make).connection

    def feed(self, *, make: bool = False) -> ZooFeed:
        if self._process != os.getpid():
            self.begin()
        with self._mutex:
            if self._feed is None or self._feed.connection.broken.is_set():
                if self._feed is not None:
                    self._notifications = self._feed.notifications
                self._feed, self._there = None, False
                self._feed = ZooFeed(self.address, self._connect(), self._keys, self.notify)
            if not self._there:
                self._find(self._feed, make=make)
            return self._feed

    def _connect(self) -> ZooConnection:
        error: StoreUnavailable | None = None
        for _ in self.address.hosts:
            try:
                return ZooConnection(self.address)
            except StoreUnavailable as away:
                error = error or away
        assert error is not None
        raise error

    def close(self) -> None:
        if self._process != os.getpid():
            self.begin()
        with self._mutex:
            feed, self._feed = self._feed, None
        if feed is not None:
            feed.connection.close()

    def _find(self, feed: ZooFeed, *, make: bool) -> None:
        """Follow the namespace if it is there, or is to be made."""
        # A member may be behind the others until it is brought up to date.
        feed.request(Operation(jute.SYNC, jute.text("/")))
        if feed.request(jute.exists(self._keys)).error != jute.OK:
            if not make:
                return
            self._make(feed)
        self.server = f"zookeeper.{feed.request(jute.get(self._identity)).content.text()}"
        feed.begin(self._notifications)
        self.ask_time(feed)
        self._there = True

    @property
    def _identity(self) -> str:
        return f"{self.address.prefix}/identity"

    def _make(self, feed: ZooFeed) -> None:
        """Make the folders; those of the keys come last and together, so that a namespace that is there is whole."""
        above = self.address.prefix.split("/")[1:]
        folders = [f"/{'/'.join(above[:depth])}" for depth in range(1, len(above) + 1)]
        for path in (*folders, self.root, self.clock, self.notify):
            self._create(feed, path)
        self._create(feed, self._identity, secrets.token_hex(8).encode())
        folders = [self._keys, *(f"{self._keys}/{number:02x}" for number in range(_FOLDERS))]
        made = [jute.create(path, b"", private=self.private) for path in folders]
        reply = feed.request(Operation(jute.MULTI, jute.multi(made)))
        _, errors = jute.multi_results(reply.content) if reply.error == jute.OK else ([], [reply.error])
        self._refuse(self._keys, next((error for error in errors if error != jute.OK), jute.OK))

    def _create(self, feed: ZooFeed, path: str, data: bytes = b"") -> None:
        self._refuse(path, feed.request(jute.create(path, data, private=self.private)).error)

    def _refuse(self, path: str, error: int) -> None:
        if error not in (jute.OK, jute.NODE_EXISTS):  # another client may have made it at the same time
            raise StoreRefused(f"{self.url}: {path} cannot be made (error {error}); no job was touched.")

    # --- reading what is there now

    def barrier(self) -> None:
        """Bring the mirror to where the ensemble is now."""
        for last_try in (False, True):
            feed = self.feed()
            if not self._there:
                return  # no client has written yet
            try:
                if self._caught_up(feed):
                    return
            except StoreUnavailable:
                if last_try:
                    raise
        raise StoreUnavailable(f"{self.url} did not reply in time; nothing was written.")

    def _caught_up(self, feed: ZooFeed) -> bool:
        done = threading.Event()
        sent = self.time.begin_call()
        blunt = self.time.width > _BLUNT
        failed = False

        def synced(reply: ZooReply | None) -> None:
            nonlocal failed
            if reply is None or reply.error != jute.OK:
                failed = True
                done.set()
                return
            if blunt:
                self.observe(reply.content.stat(), sent)
            feed.catch_up(done)  # every event before this reply has come

        # A write brings a member up to date as `sync` does, and tells the time.
        brings = jute.set_data(self.clock, b"") if blunt else Operation(jute.SYNC, jute.text(self.root))
        feed.connection.send(brings, synced)
        if not done.wait(self.address.timeout):
            feed.connection.give_up()
            return False
        return not failed

    # --- time and folders

    def ask_time(self, feed: ZooFeed | None = None) -> None:
        """Write a node of no meaning: the reply tells when the leader did so."""
        feed = feed or self.feed(make=True)
        sent = self.time.begin_call()
        reply = feed.request(jute.set_data(self.clock, b""))
        if reply.error != jute.OK:
            raise StoreUnavailable(f"{self.url}: {self.clock} is gone; nothing was written.")
        self.observe(reply.content.stat(), sent)

    def observe(self, stat: Stat, sent: float) -> None:
        """Note the time of a write of this client."""
        low = stat.modified_at * MILLISECOND
        self.time.told(low, low + MILLISECOND, sent)

    def path(self, key: str) -> str:
        """Return the node of a key: one word, whatever the key holds."""
        word = base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")
        return f"{self._keys}/{crc32(key.encode()) % _FOLDERS:02x}/{word}"

    def children(self, path: str) -> list[str]:
        """Return the names below a node; none if it is not there."""
        reply = self.feed().request(jute.children(path))
        return reply.content.texts() if reply.error == jute.OK else []

    def read(self, path: str) -> str | None:
        """Return the data of a node that is not ours; None if it is not there or may not be read."""
        try:
            reply = self.feed().request(jute.get(path))
        except StoreRefused:
            return None
        return reply.content.buffer().decode(errors="replace") if reply.error == jute.OK else None
