"""Commits of one client to a chain: races with other clients, replies that are lost, and the roots that follow.

A chain makes one commit at a time. So the threads of one client do not race each other: the one whose
turn it is takes along what the others want, as far as it does not concern the same keys.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Protocol

from solocron.errors import StoreError, StoreUnavailable
from solocron.stores.swap.chain.head import ChainHead
from solocron.stores.swap.chain.objects import Objects
from solocron.stores.swap.chain.state import ChainState
from solocron.stores.swap.chain.text import Broken, ChainCommit, token_of
from solocron.stores.swap.chain.yielding import Yielding
from solocron.stores.swap.key_store import Condition, Lost, Stale
from solocron.stores.swap.layout import NOTIFY

__all__ = ["ChainCommits", "CommitLock", "Tending", "Wanted", "in_a_thread"]

_SENT = 3
"""How often one commit is sent while replies are lost."""
_RACES = 40
"""How often a commit is tried that other clients were quicker than."""
_AT_ONCE = 2
"""Tries without a look at the head in between: the one commit that was quicker is known. A client that has lost
twice may be behind by more, and a creation for each of those costs twice as much as reading it."""
_TURN = 1.0
"""Seconds that a thread waits for another one of this client before it races on its own."""


class CommitLock(Protocol):
    """A lock: one thread of a client commits at a time."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...

    def release(self) -> None: ...


class Tending(Protocol):
    """Something that was started and ends by itself."""

    def is_alive(self) -> bool: ...

    def join(self) -> None: ...


def in_a_thread(body: Callable[[], None]) -> Tending:
    thread = threading.Thread(target=body, name="solocron-chain", daemon=True)
    thread.start()
    return thread


class Wanted:
    """A commit that a thread wants to be made."""

    __slots__ = ("checks", "keys", "outcome", "size", "taken", "writes")

    def __init__(self, checks: Mapping[str, Condition], writes: Mapping[str, str | None]) -> None:
        self.checks = checks
        self.writes = writes
        self.keys = checks.keys() | writes.keys()
        self.size = sum(len(key) + len(value or "") for key, value in writes.items())
        self.taken = False
        """True once a thread sends it."""
        self.outcome: int | Stale | StoreError | Lost | None = None
        """Its number or the reason why it was not made; None while that is not known."""


def _conclude(batch: Sequence[Wanted], outcome: int | StoreError | Lost) -> None:
    for one in batch:
        if one.outcome is None:
            one.outcome = outcome


class ChainCommits:
    """Makes the commits that the threads of one client want."""

    def __init__(
        self,
        objects: Objects,
        head: ChainHead,
        *,
        pause: Callable[[float], object],
        patience: float,
        turns: Callable[[], CommitLock],
        aside: Callable[[Callable[[], None]], Tending],
    ) -> None:
        self._objects = objects
        self._head = head
        self._pause = pause
        self._patience = patience
        self._make_turns = turns
        self._aside = aside
        self.begin()

    def begin(self) -> None:
        """Begin anew, as after a fork."""
        self._turns = self._make_turns()
        self._mutex = threading.Lock()
        self._waiting: list[Wanted] = []
        self._client = secrets.token_hex(6)
        self._numbers = count(1)
        self._yielding = Yielding()
        self._tending: Tending | None = None

    def close(self) -> None:
        """Wait for the root that is being made."""
        if self._tending is not None:
            self._tending.join()

    def make(self, checks: Mapping[str, Condition], writes: Mapping[str, str | None]) -> int | Stale:
        """Create the next commit whose checks hold; return its number, or that of the state where none is needed."""
        wanted = Wanted(checks, writes)
        with self._mutex:
            self._waiting.append(wanted)
        try:
            while wanted.outcome is None:
                self._take_turn(wanted)
        except BaseException:
            with self._mutex:  # interrupted while it waited: no thread is to make it later
                self._waiting = [one for one in self._waiting if one is not wanted]
            raise
        if isinstance(wanted.outcome, Exception):
            raise type(wanted.outcome)(*wanted.outcome.args)
        return wanted.outcome

    def _take_turn(self, wanted: Wanted) -> None:
        """Wait for this thread's turn, then make its commit, unless another thread has done so."""
        # A thread that waits for too long goes alone, unless another one has its commit in hand.
        turn = self._turns.acquire(timeout=-1 if wanted.taken else _TURN)
        try:
            if turn and not wanted.taken and (gap := self._yielding.gap()):
                self._pause(gap)
            if batch := self._take(wanted, along=turn):
                self._make(batch)
        finally:
            if turn:
                self._turns.release()

    def _take(self, wanted: Wanted, *, along: bool) -> list[Wanted]:
        """Return a commit and, with `along`, those of other threads that can be one with it; none if it is taken."""
        with self._mutex:
            if wanted.taken:
                return []
            batch = [wanted]
            limits = self._objects.limits
            written, keys, size = set(wanted.writes), wanted.keys, wanted.size
            for other in self._waiting if along else ():
                # What an earlier one writes, a later one neither checks nor writes: a mark must tell whose value it is.
                apart = other is not wanted and not (other.keys & written) - {NOTIFY}
                if apart and len(keys | other.keys) <= limits.keys and size + other.size <= limits.bytes // 4:
                    batch.append(other)
                    written |= other.writes.keys()
                    keys, size = keys | other.keys, size + other.size
            self._waiting = [one for one in self._waiting if one not in batch]
            for one in batch:
                one.taken = True
            return batch

    def _make(self, batch: list[Wanted]) -> None:
        """Make commits of a batch as one; what became of each is its outcome."""
        try:
            self._race(batch)
        except (StoreError, Lost) as error:
            _conclude(batch, error)
        except BaseException:
            _conclude(batch, Lost("the thread that sent this commit was interrupted"))
            raise

    def _race(self, batch: list[Wanted]) -> None:
        head, looked, open_ones, commit = self._head, False, batch, self._merged(batch)
        for race in range(_RACES):
            if race >= _AT_ONCE:
                head.look()
                looked = True
            state = head.known()
            with head.mutex:
                number, seen = state.number, state.seen
                stale = [state.stale(one.checks) for one in open_ones]
            if any(stale) or not commit.writes:
                if not looked:  # at the head of the chain, after these calls began
                    head.look()
                    looked = True
                    continue
                for one, keys in zip(open_ones, stale, strict=True):
                    if keys or not commit.writes:
                        one.outcome = Stale(keys) if keys else number
                open_ones = [one for one in open_ones if one.outcome is None]
                commit = self._merged(open_ones)
                if not open_ones:
                    return
                if not commit.writes:
                    continue
            since = head.trusted(state, number, seen)
            if since is None:
                continue
            began, content = head.boot(), commit.to_bytes()
            winner = self._sent(number + 1, content)
            if winner is None or token_of(winner) == commit.token:
                self._believe(state, number, since)
                head.arrived(state, number + 1, content)
                self._yielding.won(head.boot() - began)
                self._tend(state, number + 1)
                _conclude(open_ones, number + 1)
                return
            self._yielding.lost()
            self._follow(state, number, since, winner)
        raise StoreUnavailable(f"{self._objects.url}: other clients were quicker {_RACES} times; nothing was written.")

    def _merged(self, batch: Sequence[Wanted]) -> ChainCommit:
        writes: dict[str, str | None] = {}
        for one in batch:
            known = writes.get(NOTIFY)
            writes |= one.writes
            if known is not None and known.startswith("-"):  # for this client too, see `SwapStore.signal`
                writes[NOTIFY] = known
        return ChainCommit(f"{self._client}.{next(self._numbers)}", writes)

    def _follow(self, state: ChainState, number: int, since: float, winner: bytes) -> None:
        """Apply the commit that was quicker: if the checks hold after it too, the next number can be tried at once."""
        if self._head.trusted(state, number, since) is not None:
            self._head.arrived(state, number + 1, winner)

    def _believe(self, state: ChainState, number: int, since: float) -> None:
        """Raise `Lost` if the success of a creation may be that of a number which was deleted."""
        try:
            trusted = self._head.trusted(state, number, since) is not None
        except StoreError as error:
            raise Lost(str(error)) from None
        if not trusted:
            raise Lost("this client slept over its commit, and what became of it cannot be seen any more")

    def _sent(self, number: int, content: bytes) -> bytes | None:
        """Create a commit; return None if this call did so, else the commit that has the number.

        Once a reply was lost, the commit may be in the store: from then on no other error says that it is not.
        """
        name, began = self._head.name(number), self._head.boot()
        lost: Lost | None = None
        for sent in range(_SENT):
            if sent and self._head.boot() - began > self._patience:
                break
            try:
                if self._objects.create(name, content):
                    return None
            except Lost as error:
                lost = error
            except StoreError:
                if lost is None:
                    raise
            try:
                found = self._objects.get(name)
            except StoreError as error:
                lost = lost or Lost(str(error))
                continue
            if found is not None:
                return found
            # Not there: it never arrived, or comes later. The very same once more takes the number either way.
        raise lost or Lost("the number is taken, and then it is not")

    def _tend(self, state: ChainState, number: int) -> None:
        """Make the roots that are missing and delete what is old, every tenth of the way to the next root."""
        head = self._head
        if number % max(1, head.pace.commits // 10):
            return
        with head.mutex:
            due = {root: dict(state.deltas[root]) for root in state.due_roots()}
        if not due or (self._tending is not None and self._tending.is_alive()):
            return

        def tend() -> None:
            try:
                for root, delta in due.items():
                    if not head.roots.make(root, delta):
                        return
                    with head.mutex:
                        state.has_root(root)
                head.roots.trim()
            except (StoreError, Lost, Broken):
                pass  # the next commits try again, and so does every other client

        self._tending = self._aside(tend)
