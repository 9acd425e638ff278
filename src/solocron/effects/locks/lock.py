"""`with lock("name") as held:` over any store: one holder at a time, released by its holder only, fenced forever.

A lock is taken in a step of its own, never inside the caller's transaction. The store's clock decides when a lock
expires; the holder stops trusting it a little earlier, by its own clock, counted from before its request.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, NoReturn

from solocron import surroundings
from solocron.duration import parse_duration, to_us
from solocron.effects.locks.held import HELD, Held, refuse_twice
from solocron.effects.locks.session import PrivateSession, SharedSession
from solocron.effects.locks.writing import Tell, check_text, tell, write
from solocron.errors import InvalidError, LockBusy, NotEntered, StoreError, StoreRefused
from solocron.lease.liveness import Liveness, Mode
from solocron.lease.terms import LeaseTerms
from solocron.model.change import Change, Kind
from solocron.model.documents import lock as model
from solocron.model.transitions.giving_up import GivingUp
from solocron.runtime import Runtime, Threads
from solocron.stores.contract import Store
from solocron.stores.url import Secret, make_store
from solocron.stores.ward import Ward
from solocron.version import __version__

__all__ = ["AT_MOST", "Lock", "LockPlace"]

Span = timedelta | int | float | str

AT_MOST = "15m"
_LONGEST_PAUSE = 1.0
_UNTOUCHED = "Nothing was taken."


@dataclass(slots=True, eq=False)
class LockPlace:
    """A store as one process sees it: everything needed to take a lock there."""

    store: Store
    runtime: Runtime
    owner: str
    shared_session: Callable[[], SharedSession]
    """Returns the session by which a lock with `keep_alive` is held."""
    ward: Callable[[], Ward | None]
    """Returns what this process's node knows of the store going back in time; None without a node."""
    seen: dict[str, int] = field(default_factory=dict)
    """Highest fence of each lock that this process knows."""
    tell: Tell = tell
    liveness: Liveness = field(init=False)

    def __post_init__(self) -> None:
        self.liveness = Liveness(self.store, self.runtime, self.owner)

    def move(self, store: Store, owner: str) -> None:
        """Move to another store before any lock was taken here; locks that refer to this place follow."""
        self.store, self.owner, self.seen = store, owner, {}
        self.liveness = Liveness(store, self.runtime, owner)

    @classmethod
    def of(
        cls, store: str | Secret | Store | None, *, namespace: str | None = None, lease: Span = "15s",
        runtime: Runtime | None = None,
    ) -> LockPlace:  # fmt: skip
        """Return the place for a program without a node."""
        made = runtime or Threads()
        url = store if store is not None else surroundings.store_url() or surroundings.DEFAULT_STORE
        where = surroundings.namespace() if namespace is None else namespace
        opened = make_store(url, namespace=where) if isinstance(url, str | Secret) else url
        host = os.uname().nodename
        node = surroundings.node_name(host, os.getpid(), made.rng.token())
        terms = LeaseTerms.of(node=node, host=host, pid=os.getpid(), version=__version__, lease=lease)
        private = PrivateSession(opened, made, terms)
        return cls(opened, made, node, lambda: private, ward=lambda: None)


class Lock:
    """One lock. The object holds nothing itself: any number of threads and coroutines may share it."""

    def __init__(
        self,
        store: str | Secret | Store | LockPlace | None,
        name: str,
        *,
        at_most: Span | None = None,
        at_least: Span = 0,
        wait: Span | bool | None = None,
        keep_alive: bool = False,
        namespace: str | None = None,
        lease: Span = "15s",
    ) -> None:
        self.name = check_text(name, "lock", untouched=_UNTOUCHED)
        if keep_alive and at_most is not None:
            raise InvalidError(
                f"lock {name!r}: keep_alive=True ties it to this process, so at_most has no meaning. {_UNTOUCHED}"
            )
        self.keep_alive = keep_alive
        self._at_most = _span(AT_MOST if at_most is None else at_most, "at_most", name, zero=False)
        self._at_least = _span(at_least, "at_least", name)
        if not keep_alive and self._at_least > self._at_most:
            raise InvalidError(f"lock {name!r}: at_least is longer than at_most. {_UNTOUCHED}")
        self._wait = _patience(wait, name)
        self.watching = False
        """True if the same process tries again and again, so that it can also detect a dead holder by its own clock."""
        self._own = not isinstance(store, LockPlace)
        self.place = store if isinstance(store, LockPlace) else LockPlace.of(store, namespace=namespace, lease=lease)
        self._close = weakref.finalize(self, self.place.store.close) if self._own else None

    def __repr__(self) -> str:
        return f"<Lock {self.name!r} at {self.place.store.url}>"

    @property
    def namespace(self) -> str:
        return self.place.store.namespace

    def boot(self) -> float:
        return self.place.runtime.clock.boot()

    def close(self) -> None:
        """Close the connections of a lock that was made from a URL; a later use opens them again."""
        if self._own:
            self.place.store.close()

    # --- taking --------------------------------------------------------------------------------------------------

    def acquire(self, wait: Span | bool | None = None) -> Held | None:
        """Return the lock, or None if another caller has it and does not release it within `wait`."""
        tries = self._tries(self._wait if wait is None else _patience(wait, self.name))
        while True:
            try:
                pause = next(tries)
            except StopIteration as end:
                return self._noted(end.value)
            try:
                self.place.store.wait(pause)
            except BaseException:
                tries.close()
                raise

    async def acquire_async(self, wait: Span | bool | None = None) -> Held | None:
        """Do the same as `acquire` without blocking the event loop; between two tries no thread is occupied."""
        import asyncio

        from solocron.dispatch.in_thread import in_thread

        tries = self._tries(self._wait if wait is None else _patience(wait, self.name))
        while True:
            found: Any = await in_thread(partial(_advance, tries), undo=_undone(tries))
            if not isinstance(found, float):
                return self._noted(found)
            try:
                await asyncio.sleep(min(found, _LONGEST_PAUSE / 4))
            except BaseException:
                await in_thread(tries.close)
                raise

    def _noted(self, held: Held | None) -> Held | None:
        if held is not None:
            HELD.set((*(other for other in HELD.get() if not other.released and not other.lost), held))
        return held

    def _tries(self, wait: float | None) -> Generator[float, None, Held | None]:
        """Try until the lock is granted or the time is over; yield how long to wait before the next try."""
        refuse_twice(self)
        place, token = self.place, self.place.runtime.rng.token()
        place.store.open()
        shared = place.shared_session() if self.keep_alive else None
        session = shared.take() if shared is not None else None
        until = None if wait is None else self.boot() + wait
        mode = Mode.TICK if wait is None and not self.watching else Mode.WATCH
        dead: frozenset[str] = frozenset()
        pause, heard, granted = 0.01, True, False
        try:
            while True:
                asked, heard = self.boot(), False
                answer, now = self._ask(token, session, dead, queue=wait is not None)
                heard = True
                if isinstance(answer, model.Granted):
                    granted = True
                    return self._held(token, answer, asked, shared, session)
                holder = answer.session
                if holder and holder not in dead and place.liveness.is_dead(holder, mode, now=now):
                    dead |= {holder}
                    continue
                left = 0.0 if until is None else until - self.boot()
                if left <= 0:
                    return None
                yield min(pause, left, *self._worth_a_look(answer, now))
                pause = min(pause * 1.6, _LONGEST_PAUSE)
        finally:
            if not granted:
                if wait is not None or not heard:
                    self._give_up(token)
                if shared is not None:
                    shared.drop()

    def _worth_a_look(self, busy: model.Busy, now: int) -> list[float]:
        """Return the seconds until the holder's time is over, by either clock."""
        soon = [] if busy.until is None else [max((busy.until - now) / 1_000_000, 0.001)]
        over = None if busy.session is None else self.place.liveness.due(busy.session)
        return soon if over is None else [*soon, max(over - self.boot(), 0.001)]

    def _ask(self, token: str, session: str | None, dead: frozenset[str], *, queue: bool) -> tuple[Any, int]:
        place = self.place
        ask = model.Ask(
            token=token, owner=place.owner, at_most=self._at_most, at_least=self._at_least, session=session,
            queue=queue, seen=place.seen.get(self.name, 0),
        )  # fmt: skip
        result, now = self._write(lambda doc, at: model.acquire(doc, ask, now=at, dead=dead), session=session)
        if result is None:
            raise StoreRefused(
                f"lock {self.name!r}: the store is older than what it has granted before; was a backup restored? "
                f"{_UNTOUCHED} Run `solocron restored`."
            )
        return result, now

    def _held(
        self, token: str, granted: model.Granted, asked: float, shared: SharedSession | None, session: str | None
    ) -> Held:
        self.place.seen[self.name] = max(granted.fence, self.place.seen.get(self.name, 0))
        if shared is not None and session is not None:
            return Held(
                self, token=token, fence=granted.fence, trusted_until=partial(shared.trusted_until, session),
                dropped=shared.drop,
            )  # fmt: skip
        over = asked + _trusted(self._at_most)
        return Held(self, token=token, fence=granted.fence, trusted_until=lambda: over, dropped=_nothing)

    def _give_up(self, token: str) -> None:
        """Leave nothing behind: neither a place in the queue nor a lock whose grant was lost with the reply."""
        try:
            self._write(GivingUp(Kind.LOCK, self.name, token))
        except StoreError:
            pass  # a ticket lapses within seconds; a grant whose reply was lost is released by the node, or lapses

    # --- what the holder may do ----------------------------------------------------------------------------------

    def extend(self, token: str, at_most: Span, at_least: Span | None) -> float | None:
        """Return the boot time up to which the holder may trust it; None if it is no longer the holder's."""
        asked, most = self.boot(), _span(at_most, "at_most", self.name, zero=False)
        least = 0 if at_least is None else _span(at_least, "at_least", self.name)
        if least > most:
            raise InvalidError(f"lock {self.name!r}: at_least is longer than at_most. Nothing was extended.")
        answer, _ = self._write(
            lambda doc, at: _said(model.extend(doc, token=token, at_most=most, at_least=least, now=at))
        )
        return None if answer is None else asked + _trusted(most)

    def let_go(self, token: str) -> bool:
        """Release the lock; False if the token is not the holder's."""
        answer, _ = self._write(GivingUp(Kind.LOCK, self.name, token), stubborn=True)
        if answer is True:
            self.place.store.signal()
        return answer is not None

    def _write(
        self, change: Callable[[Any, int], Change | None], *, session: str | None = None, stubborn: bool = False
    ) -> tuple[Any, int]:
        """Return the answer of a change (None if it was declined), and the store's time."""
        result, now = write(
            self.place.store, Kind.LOCK, self.name, change, runtime=self.place.runtime, session=session,
            ward=self.place.ward(), stubborn=stubborn,
        )  # fmt: skip
        return (result.answer if result.verdict == "applied" else None), now

    # --- with ----------------------------------------------------------------------------------------------------

    def __bool__(self) -> NoReturn:
        raise NotEntered(
            f"lock {self.name!r} was used as a truth value. Nothing was taken; write `with lock as held:`, or "
            "`held = lock.acquire()` and `if held:`."
        )

    def __enter__(self) -> Held:
        return self._or_busy(self.acquire())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._mine().release()

    async def __aenter__(self) -> Held:
        return self._or_busy(await self.acquire_async())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from solocron.dispatch.in_thread import in_thread

        await in_thread(self._mine().release)

    def _mine(self) -> Held:
        held = next(held for held in reversed(HELD.get()) if held.lock is self and not held.released)
        HELD.set(tuple(other for other in HELD.get() if other is not held))
        return held

    def _or_busy(self, held: Held | None) -> Held:
        if held is None:
            raise LockBusy(
                f"lock {self.name!r} is held by another caller, and the body was not run. See `solocron locks`; "
                'wait="30s" waits for it.'
            )
        return held


def _span(value: Span, what: str, name: str, *, zero: bool = True) -> int:
    found = to_us(parse_duration(value, what=f"lock {name!r}: {what}"))
    if not zero and found == 0:
        raise InvalidError(f"lock {name!r}: {what} is 0. {_UNTOUCHED}")
    return found


def _patience(wait: Span | bool | None, name: str) -> float | None:
    """Return the seconds to wait; None: not at all; `True`: forever."""
    if wait is None or wait is False:
        return None
    if wait is True:
        return math.inf
    return parse_duration(wait, what=f"lock {name!r}: wait").total_seconds()


def _trusted(at_most: int) -> float:
    """Return how long a holder may trust a lock by its own clock, which may run slower than the store's."""
    seconds = at_most / 1_000_000
    # At least some milliseconds: a store may count from a moment that much earlier than our request.
    return seconds - max(min(seconds / 10, 1.0), seconds / 40, min(0.02, seconds / 2))


def _said(change: Change | None) -> Change | None:
    """Return a change whose answer tells "done" from "declined", whatever else it contains."""
    return change if change is None or change.answer is not None else Change(change.doc, change.records, "done")


def _advance(tries: Generator[float, None, Held | None]) -> float | Held | None:
    try:
        return float(next(tries))
    except StopIteration as end:
        held: Held | None = end.value
        return held


def _undone(tries: Generator[float, None, Held | None]) -> Callable[[Any], None]:
    def undo(found: Any) -> None:
        tries.close()
        if isinstance(found, Held):
            found.release()

    return undo


def _nothing() -> None:
    """Do nothing: a lock that is not tied to a session has nothing else to release."""
