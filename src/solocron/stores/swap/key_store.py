"""`KeyStore`: everything that a server must be able to do to carry a `SwapStore`.

Keys are strings, ordered by code point, which is the order of their UTF-8 bytes. The suite of
`solocron.testing.conformance.key_store` holds an adapter to what is written here.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol

from solocron.stores.contract import Capabilities, Check

__all__ = [
    *("ABSENT", "EXISTS", "Condition", "Found", "Item", "KeyLimits"),
    *("KeyStore", "Lost", "Span", "Stale", "Swapped", "holds"),
]


class _Presence(Enum):
    ABSENT = "absent"
    EXISTS = "exists"


ABSENT, EXISTS = _Presence.ABSENT, _Presence.EXISTS

Condition = _Presence | Hashable
"""What must hold of a key for a commit: it is not there, it is there, or it has this very mark."""


def holds(condition: Condition, mark: Hashable | None) -> bool:
    """Return whether a condition holds of a key with this mark; None: the key is not there."""
    if condition is ABSENT or mark is None:
        return condition is ABSENT and mark is None
    return condition is EXISTS or mark == condition


class Item(NamedTuple):
    """A key as it is stored. Its mark is opaque, and no key has the same mark twice, not even after a deletion."""

    key: str
    value: str
    mark: Hashable


@dataclass(frozen=True, slots=True)
class Span:
    """The keys `low <= key < high` in their order, or backwards; at most `limit`. `bare`: without their values."""

    low: str
    high: str
    limit: int | None = None
    reverse: bool = False
    bare: bool = False

    @classmethod
    def below(cls, prefix: str, *, after: str | None = None, limit: int | None = None, bare: bool = False) -> Span:
        """Return the span of a prefix that ends with a slash, or of what follows a key in it."""
        assert prefix.endswith("/")
        low = prefix if after is None else f"{after}\0"
        return cls(low, f"{prefix[:-1]}0", limit, bare=bare)


@dataclass(frozen=True, slots=True)
class Found:
    """The reply of a `fetch`: the keys that are there, and a page for each span."""

    items: Mapping[str, Item]
    pages: Sequence[Sequence[Item]]
    server: str = ""
    """Identity of the server that replied."""


@dataclass(frozen=True, slots=True)
class Swapped:
    """The commit is in the store."""

    marks: Mapping[str, Hashable]
    """The new marks of the written keys; a deleted key has none."""
    found: bool | None = None
    """Whether any key has the prefix `look`, as seen by this very commit or later; None where that is not known."""
    also: Item | None = None
    """The key `also`, read likewise; None if it is not there, or was not read."""
    server: str = ""
    """Identity of the server that read `also`; empty: it was not read."""


@dataclass(frozen=True, slots=True)
class Stale:
    """Nothing was written. `keys`: the checks that did not hold; None where the server does not tell."""

    keys: frozenset[str] | None = field(default=None)
    moved: bool = False
    """Whether another server replied than the one that the commit was meant for."""


class Lost(Exception):
    """The request was sent and no reply came: the commit may be in the store, now or later."""


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """The most that one commit may hold."""

    keys: int
    """Keys that it checks or writes; one that it does both with counts once."""
    bytes: int
    value: int
    """Bytes of one value."""


class KeyStore(Protocol):
    """One client of a namespace of keys; safe to call from any thread.

    A call that certainly did nothing raises `StoreUnavailable`, one that settings or rights forbid `StoreRefused`. A
    client that finds itself in another process begins anew: connections, threads, identifiers.
    """

    @property
    def limits(self) -> KeyLimits: ...

    @property
    def url(self) -> str:
        """Return the address with secrets masked."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """Return the tier, and whether `wait` works; known once it is open."""
        ...

    def open(self) -> None:
        """Connect, and refuse a server that cannot keep the promises. Idempotent."""
        ...

    def close(self) -> None:
        """Close every connection and end every wait; a later call connects again."""
        ...

    def fetch(self, keys: Sequence[str], spans: Sequence[Span] = ()) -> Found:
        """Read keys and spans, linearizable; every page whole, however many round trips that takes."""
        ...

    def commit(
        self,
        checks: Mapping[str, Condition],
        writes: Mapping[str, str | None],
        *,
        look: str | None = None,
        also: str | None = None,
        server: str | None = None,
    ) -> Swapped | Stale:
        """Make all writes (None: delete) if every check holds, else none; raise `Lost` where that is not known.

        A conflict that is not about a check is the adapter's to repeat. `look` is a prefix and `also` a key to read on
        the way, see `Swapped`. With `server`, nothing is written by another server than that one.
        """
        ...

    def now(self) -> int:
        """Return a time in microseconds that the server's clock has reached, from its last replies; 0: none told it."""
        ...

    def sharpen(self, within: int) -> None:
        """Make sure that `now` is behind the server's clock by no more than so many microseconds; may take a second."""
        ...

    def ask_time(self) -> str:
        """Make one cheap call whose reply tells the time; return the identity of the server."""
        ...

    def position(self) -> Any:
        """Return the place in the stream of values of the key `notify` as it is now."""
        ...

    def wait(self, after: Any, timeout: float) -> tuple[Any, Sequence[str | None]]:
        """Return a later place and the values written to `notify` since `after`, as soon as there is one.

        Without any, return after `timeout` seconds, or when the client is closed. None stands for values that were
        missed. Not for several threads at once.
        """
        ...

    def checks(self) -> Sequence[Check]:
        """Return what `doctor` shows of this server."""
        ...

    def namespaces(self) -> Collection[str]:
        """Return the namespaces beside this one, in no order."""
        ...
