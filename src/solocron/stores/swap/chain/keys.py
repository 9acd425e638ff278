"""A commit chain as a key store. No lock is kept over a call: what a thread missed, it finds by the number."""

from __future__ import annotations

import os
import random
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Protocol

from solocron.clock import SystemClock
from solocron.errors import StoreError, StoreRefused, StoreUnavailable
from solocron.stores.contract import Capabilities, Check
from solocron.stores.swap.chain.checks import chain_checks
from solocron.stores.swap.chain.objects import Objects
from solocron.stores.swap.chain.roots import Roots
from solocron.stores.swap.chain.state import PACE, ChainPace, ChainState
from solocron.stores.swap.chain.text import Broken, ChainCommit, commit_name, token_of
from solocron.stores.swap.key_store import Condition, Found, KeyLimits, Lost, Span, Stale, Swapped
from solocron.stores.swap.layout import NOTIFY, is_derived

__all__ = ["ChainKeys", "CommitLock", "Tending"]

_SENT = 3
"""How often one commit is sent while replies are lost."""
_RACES = 40
"""How often a commit is tried that other clients were quicker than."""
_CALM = 3
"""Lost races after which a client pauses before the next."""
_TURN = 1.0
"""Seconds that a thread waits for another one of this client: they would only race each other."""
_LOADS = 5


class CommitLock(Protocol):
    """A lock: one thread of a client commits at a time."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...

    def release(self) -> None: ...


class Tending(Protocol):
    """Something that was started and ends by itself."""

    def is_alive(self) -> bool: ...

    def join(self) -> None: ...


def _in_a_thread(body: Callable[[], None]) -> Tending:
    thread = threading.Thread(target=body, name="solocron-chain", daemon=True)
    thread.start()
    return thread


class ChainKeys:
    """One client of a namespace of keys."""

    def __init__(
        self,
        objects: Objects,
        namespace: str = "default",
        *,
        pace: ChainPace = PACE,
        boot: Callable[[], float] | None = None,
        pause: Callable[[float], object] = lambda most: time.sleep(random.uniform(0.0, most)),  # noqa: S311 - jitter
        patience: float = 1.0,
        turns: Callable[[], CommitLock] = threading.Lock,
        aside: Callable[[Callable[[], None]], Tending] = _in_a_thread,
    ) -> None:
        """`patience`: seconds after which a commit is not sent again. `pause` gets the most seconds.

        `turns` makes the lock of which `acquire` waits; `aside` starts what makes roots and deletes commits.
        """
        self.objects = objects
        self.pace = pace
        self._namespace = namespace
        self._folder = f"d/{namespace}/"
        self._boot = boot or SystemClock().boot
        self._pause = pause
        self._patience = patience
        self._make_turns = turns
        self._aside = aside
        self._roots = Roots(objects, self._folder, pace)
        self._closed = threading.Event()
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._mutex = threading.Lock()
        self._turns = self._make_turns()
        self._state: ChainState | None = None
        self._server = ""
        self._made = False
        self._client = secrets.token_hex(6)
        self._commits = count(1)
        self._tending: Tending | None = None

    def _here(self) -> None:
        if self._process != os.getpid():
            self._begin()

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
        if self._process == os.getpid() and self._tending is not None:
            self._tending.join()
        self.objects.close()

    # --- the state

    def fetch(self, keys: Sequence[str], spans: Sequence[Span] = ()) -> Found:
        for key in keys:
            key.encode()  # a key that cannot be sent is not there, and must not look so
        self._here()
        return self._look().mirror.fetch(keys, spans, self._look_up_server())

    def _look(self) -> ChainState:
        """Apply every commit that is there; return the state."""
        while True:
            state = self._known()
            with self._mutex:
                number, seen = state.number, state.seen
            began = self._boot()
            found = self.objects.get(self._name(number + 1))
            if self._trusted(state, number, seen) is None:
                continue
            if found is None:
                with self._mutex:
                    state.saw_head(began)
                return state
            self._arrived(state, number + 1, found)

    def _arrived(self, state: ChainState, number: int, content: bytes) -> ChainCommit:
        """Apply a commit that was read, unless another thread has done so."""
        try:
            commit = ChainCommit.of(content)
        except Broken as broken:
            raise self._broken(self._name(number), broken) from None
        with self._mutex:
            state.apply(number, commit.writes)
        return commit

    def _trusted(self, state: ChainState, number: int, seen: float) -> float | None:
        """Return since when replies about the commit after a number can be believed; None: begin again.

        A client that slept may be told of a number that was deleted meanwhile: nothing is there, or what another
        sleeper has left there. `seen` is what was known for that very number.
        """
        asked = self._boot()
        if asked - seen <= self.pace.trusted:
            return seen
        if self._roots.reached(self.pace.releasing(number + 1)):
            with self._mutex:
                if self._state is state:
                    self._state = None
            return None
        with self._mutex:
            state.saw_head(asked)
        return asked

    def _known(self) -> ChainState:
        """Return the state of this client, read from the newest root where it has none."""
        state = self._state
        for _ in range(_LOADS):
            if state is not None:
                return state
            loaded = self._loaded()
            with self._mutex:
                if self._state is None:
                    self._state = loaded
                state = self._state
        raise StoreUnavailable(f"{self.url}: the newest snapshot could not be read whole; nothing was written.")

    def _loaded(self) -> ChainState | None:
        began = self._boot()
        try:
            number = self._roots.newest()
            root = self._roots.get(number) if number else None
            if number and root is None:
                return None
            entries = {} if root is None else self._roots.entries(root)
        except Broken as broken:
            raise self._broken("a snapshot", broken) from None
        return ChainState(self.pace, root=number, entries=entries, seen=began)

    def _name(self, number: int) -> str:
        return self._folder + commit_name(number)

    def _broken(self, what: str, broken: Broken) -> StoreRefused:
        return StoreRefused(
            f"{self.url}: {what} is not what Solocron wrote ({broken}); nothing was written. Upgrade Solocron, if a "
            "newer one wrote it; else restore the folder or take another namespace."
        )

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
        identity = self._make()
        if server is not None and server != identity:
            return Stale(frozenset(), moved=True)
        kept = {key: value for key, value in writes.items() if not is_derived(key) and key != NOTIFY}  # clients poll
        commit = ChainCommit(f"{self._client}.{next(self._commits)}", kept)
        with self._turn():
            found = self._commit(checks, commit)
        if isinstance(found, Stale):
            return found
        marks = {key: found for key, value in kept.items() if value is not None}
        state = self._state
        if state is None or state.number < found or (look is None and also is None):
            return Swapped(marks)
        return state.mirror.seen(marks, look, also, identity)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Let the threads of this client commit one after the other, unless one takes too long."""
        taken = self._turns.acquire(timeout=_TURN)
        try:
            yield
        finally:
            if taken:
                self._turns.release()

    def _commit(self, checks: Mapping[str, Condition], commit: ChainCommit) -> int | Stale:
        """Create the next commit whose checks hold; return its number, or that of the state where none is needed."""
        content = commit.to_bytes()
        looked = False
        for race in range(_RACES):
            state = self._known()
            with self._mutex:
                number, seen, stale = state.number, state.seen, state.stale(checks)
            if stale or not commit.writes:
                if looked:  # at the head of the chain, after this call began
                    return Stale(stale) if stale else number
                self._look()
                looked = True
                continue
            since = self._trusted(state, number, seen)
            if since is None:
                continue
            if race > _CALM:
                self._pause(0.004 * race)
            winner = self._sent(number + 1, content)
            if winner is None or token_of(winner) == commit.token:
                self._believe(state, number, since)
                self._arrived(state, number + 1, content)
                self._tend(state, number + 1)
                return number + 1
            self._follow(state, number, since, winner)
        raise StoreUnavailable(f"{self.url}: other clients were quicker {_RACES} times; nothing was written.")

    def _follow(self, state: ChainState, number: int, since: float, winner: bytes) -> None:
        """Apply the commit that was quicker: if the checks hold after it too, the next number can be tried at once."""
        if self._trusted(state, number, since) is not None:
            self._arrived(state, number + 1, winner)

    def _believe(self, state: ChainState, number: int, since: float) -> None:
        """Raise `Lost` if the success of a creation may be that of a number which was deleted."""
        try:
            trusted = self._trusted(state, number, since) is not None
        except StoreError as error:
            raise Lost(str(error)) from None
        if not trusted:
            raise Lost("this client slept over its commit, and what became of it cannot be seen any more")

    def _sent(self, number: int, content: bytes) -> bytes | None:
        """Create a commit; return None if this call did so, else the commit that has the number.

        Once a reply was lost, the commit may be in the store: from then on no other error says that it is not.
        """
        name, began = self._name(number), self._boot()
        lost: Lost | None = None
        for sent in range(_SENT):
            if sent and self._boot() - began > self._patience:
                break
            try:
                if self.objects.create(name, content):
                    return None
            except Lost as error:
                lost = error
            except StoreError:
                if lost is None:
                    raise
            try:
                found = self.objects.get(name)
            except StoreError as error:
                lost = lost or Lost(str(error))
                continue
            if found is not None:
                return found
            # Not there: it never arrived, or comes later. The very same once more takes the number either way.
        raise lost or Lost("the number is taken, and then it is not")

    # --- roots, and what they replace

    def _tend(self, state: ChainState, number: int) -> None:
        """Make the roots that are missing and delete what is old, every tenth of the way to the next root."""
        if number % max(1, self.pace.commits // 10):
            return
        with self._mutex:
            due = {root: dict(state.deltas[root]) for root in state.due_roots()}
        if not due or (self._tending is not None and self._tending.is_alive()):
            return

        def tend() -> None:
            try:
                for root, delta in due.items():
                    if not self._roots.make(root, delta):
                        return
                    with self._mutex:
                        state.has_root(root)
                self._roots.trim()
            except (StoreError, Lost, Broken):
                pass  # the next commits try again, and so does every other client

        self._tending = self._aside(tend)

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

    def position(self) -> None:
        """Return nothing: clients poll."""

    def wait(self, after: None, timeout: float) -> tuple[None, Sequence[str | None]]:
        """Let time pass: clients poll."""
        self._closed.wait(timeout)
        return None, []

    def checks(self) -> Sequence[Check]:
        self._here()
        return [*self.objects.checks(), *chain_checks(self.objects, self._look(), self._folder)]

    def namespaces(self) -> Collection[str]:
        listed = {name.removeprefix("n/") for name in self.objects.names("n/", 10_000)}
        return listed | ({self._namespace} if self._made else set())
