"""A commit chain as a key store."""

from __future__ import annotations

import os
import random
import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from solocron.clock import SystemClock
from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.contract import Capabilities, Check
from solocron.stores.swap.chain.checks import chain_checks
from solocron.stores.swap.chain.commits import ChainCommits, CommitLock, Tending, in_a_thread
from solocron.stores.swap.chain.head import ChainHead
from solocron.stores.swap.chain.objects import Objects
from solocron.stores.swap.chain.state import PACE, ChainPace
from solocron.stores.swap.key_store import Condition, Found, KeyLimits, Lost, Span, Stale, Swapped
from solocron.stores.swap.layout import is_derived

__all__ = ["ChainKeys"]

_LOOK = 1.0
"""Seconds between two looks at the head of the chain while a thread waits for notifications: a service does
not tell that an object was created. Every call of this client looks there too."""


class ChainKeys:
    """One client of a namespace of keys."""

    def __init__(
        self,
        objects: Objects,
        namespace: str = "default",
        *,
        pace: ChainPace = PACE,
        boot: Callable[[], float] | None = None,
        pause: Callable[[float], object] = lambda most: time.sleep(random.uniform(most / 2, most)),  # noqa: S311 - jitter
        patience: float = 1.0,
        turns: Callable[[], CommitLock] = threading.Lock,
        aside: Callable[[Callable[[], None]], Tending] = in_a_thread,
    ) -> None:
        """`patience`: seconds after which a commit is not sent again.

        `pause` gets the most seconds and waits for at least half of them;
        `turns` makes the lock of which `acquire` waits; `aside` starts what makes roots and deletes commits.
        """
        self.objects = objects
        self._namespace = namespace
        self._folder = f"d/{namespace}/"
        self._head = ChainHead(objects, self._folder, pace, boot or SystemClock().boot)
        self._commits = ChainCommits(objects, self._head, pause=pause, patience=patience, turns=turns, aside=aside)
        self._closed = threading.Event()
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._server = ""
        self._made = False

    def _here(self) -> None:
        if self._process != os.getpid():
            self._begin()
            self._head.begin()
            self._commits.begin()

    @property
    def limits(self) -> KeyLimits:
        return self.objects.limits

    @property
    def url(self) -> str:
        return self.objects.url

    @property
    def capabilities(self) -> Capabilities:
        return self.objects.capabilities

    def open(self) -> None:
        self._here()
        self._closed.clear()
        self.objects.open()
        self._look_up_server()

    def close(self) -> None:
        self._closed.set()
        if self._process == os.getpid():
            self._commits.close()
            if self._head.state is not None:
                self._head.state.mirror.reach(0)  # wakes a thread that waits
        self.objects.close()

    # --- reading and writing

    def fetch(self, keys: Sequence[str], spans: Sequence[Span] = ()) -> Found:
        for key in keys:
            key.encode()  # a key that cannot be sent is not there, and must not look so
        self._here()
        return self._head.look().mirror.fetch(keys, spans, self._look_up_server())

    def commit(
        self,
        checks: Mapping[str, Condition],
        writes: Mapping[str, str | None],
        *,
        look: str | None = None,
        also: str | None = None,
        server: str | None = None,
    ) -> Swapped | Stale:
        identity = self._make()
        if server is not None and server != identity:
            return Stale(frozenset(), moved=True)
        kept = {key: value for key, value in writes.items() if not is_derived(key)}
        found = self._commits.make(checks, kept)
        if isinstance(found, Stale):
            return found
        marks = {key: found for key, value in kept.items() if value is not None}
        state = self._head.state
        if state is None or state.number < found or (look is None and also is None):
            return Swapped(marks)
        return state.mirror.seen(marks, look, also, identity)

    # --- identity and namespaces

    def _look_up_server(self) -> str:
        if not self._server:
            found = self.objects.get("identity")
            self._server = "" if found is None else f"chain.{found.decode(errors='replace')[:32]}"
        return self._server

    def _make(self) -> str:
        """Write the identity and the name of the namespace where they are missing; return the identity."""
        self._here()
        if not self._made:
            self._probe()
            for name, content in (("identity", secrets.token_hex(8)), (f"n/{self._namespace}", "")):
                self._created(name, content.encode())
            self._made = True
        return self._look_up_server()

    def _created(self, name: str, content: bytes) -> bool:
        """Create an object that is no commit; once more if no reply comes: it is there then, or was there before."""
        for again in (False, True):
            try:
                return self.objects.create(name, content)
            except Lost as error:
                if again:
                    raise StoreUnavailable(f"{self.url} did not reply: {error}. No job was touched.") from None
        raise AssertionError("the last round returns or raises")

    def _probe(self) -> None:
        """Refuse a service that creates what is there already: a look-alike that ignores the condition."""
        name = f"probe/{secrets.token_hex(8)}"
        self._created(name, b"")
        twice = self._created(name, b"")
        self.objects.delete(name)
        if twice:
            raise StoreRefused(
                f"{self.url} ignores the condition that an object is created only if it is absent, so two nodes could "
                "both win; no job was touched. Take a service that honours it: see the page on object stores."
            )

    # --- time, notifications, looking after

    def now(self) -> int:
        return self.objects.now()

    def sharpen(self, within: int) -> None:
        self.objects.sharpen(within)

    def ask_time(self) -> str:
        server = self._make()
        self.objects.get("identity")
        return server

    def position(self) -> int:
        self._here()
        return self._head.look().number

    def wait(self, after: int, timeout: float) -> tuple[int, Sequence[str | None]]:
        """Look at the head of the chain every second; what another thread of this client reads counts at once."""
        self._here()
        until = time.monotonic() + timeout
        while True:
            place, values = self._head.look().news(after, min(_LOOK, until - time.monotonic()), self._closed.is_set)
            if values or self._closed.is_set() or time.monotonic() >= until:
                return place, values

    def checks(self) -> Sequence[Check]:
        self._here()
        return [*self.objects.checks(), *chain_checks(self.objects, self._head.look(), self._folder)]

    def namespaces(self) -> Collection[str]:
        listed = {name.removeprefix("n/") for name in self.objects.names("n/", 10_000)}
        return listed | ({self._namespace} if self._made else set())
