"""A lock that is held: its fence, a way to prolong it, and a way to notice that it is lost.

Held locks are known per thread and per coroutine, so that taking one twice is refused instead of waiting for oneself,
and `assert_locked` works.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from solocron.errors import ConflictError, LockLost, StoreError

if TYPE_CHECKING:
    from solocron.effects.locks.lock import Lock, Span

__all__ = ["HELD", "Held", "assert_locked", "refuse_twice"]

HELD: ContextVar[tuple[Held, ...]] = ContextVar("solocron_held", default=())
"""Locks taken by this thread or coroutine; a copied context may still list one that has been released since."""


class Held:
    """The proof of one acquisition. Everything it does is refused once another caller has the lock."""

    def __init__(
        self,
        lock: Lock,
        *,
        token: str,
        fence: int,
        trusted_until: Callable[[], float],
        dropped: Callable[[], None],
    ) -> None:
        self.lock = lock
        self.name = lock.name
        self.fence = fence
        self._token = token
        self._trusted_until = trusted_until
        self._dropped = dropped
        self._gone = False
        self._settled = False
        """True once the store has accepted the release; one that failed can be repeated."""
        self.released = False

    def __repr__(self) -> str:
        state = "released" if self.released else "lost" if self.lost else "held"
        return f"<Held {self.name!r} fence={self.fence} {state}>"

    @property
    def lost(self) -> bool:
        """True if the lock can no longer be proved to be ours. Does not call the store."""
        return self._gone or (not self.released and self.lock.boot() >= self._trusted_until())

    def trusted_until(self) -> float:
        """Boot time up to which it is certainly ours, as far as is known now."""
        return self._trusted_until()

    def check(self) -> None:
        """Raise `LockLost` unless the lock is certainly ours."""
        if self.released or self.lost:
            what = "was released" if self.released else "is lost: its time is over"
            raise LockLost(
                f"lock {self.name!r} (fence {self.fence}) {what}; another caller may have it. Stop now; take it for "
                "longer, extend it in time, or tie it to this process with keep_alive=True."
            )

    def extend(self, at_most: Span, at_least: Span | None = None) -> None:
        """Hold it for `at_most` from now on: the time is set, not added. Raises `LockLost` if it is not ours."""
        self.check()
        until = self.lock.extend(self._token, at_most, at_least)
        if until is None:
            self._gone = True
            self.check()
        elif not self.lock.keep_alive:
            self._trusted_until = lambda: until

    def guard(self, connection: Any) -> None:
        """Raise `StaleFence`, inside the caller's own transaction, if it has seen a higher fence of this lock."""
        self.check()
        from solocron.effects.guard import guard
        from solocron.effects.tables import schema_of

        scope, store = f"lock/{self.lock.namespace}/{self.name}", self.lock.place.store
        guard(connection, scope=scope, fence=self.fence, schema=schema_of(store), clock=store.clock)

    def release(self) -> bool:
        """Release the lock. False: it was no longer ours, or the store was unavailable; then it may be tried again.

        Releasing twice is allowed.
        """
        if self._settled:
            return not self._gone
        first, self.released = not self.released, True
        try:
            ours = self.lock.let_go(self._token)
        except StoreError as error:
            later = "it ends by itself" if self.lock.place.ward() is None else "the node releases it later"
            sentence = f"a lock could not be released; {later}"
            self.lock.place.tell(sentence, lock=self.name, fence=self.fence, error=str(error))
            return False
        finally:
            if first:
                self._dropped()
        self._settled = True
        if not ours:
            self._gone = True
            sentence = "a lock was no longer held when it was released; another caller may have had it meanwhile"
            self.lock.place.tell(sentence, lock=self.name, fence=self.fence)
        return ours


def refuse_twice(lock: Lock) -> None:
    """Raise if the caller holds the lock already: it would wait for itself forever."""
    for held in HELD.get():
        if not held.released and held.name == lock.name and held.lock.place == lock.place:
            raise ConflictError(
                f"lock {lock.name!r} is already held here (fence {held.fence}), and it cannot be taken twice. "
                "Nothing was changed; pass the held one on, or give the inner part a lock of its own."
            )


def assert_locked(name: str | None = None) -> Held:
    """Return the lock of that name (or the innermost) that this thread or coroutine holds; raise if there is none."""
    for held in reversed(HELD.get()):
        if not held.released and name in (None, held.name):
            held.check()
            return held
    raise ConflictError(f"lock {name!r} is not held here" if name else "no lock is held here") from None
