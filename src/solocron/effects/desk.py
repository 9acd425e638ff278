"""The owner of an effect: a run's attempt, or a program outside runs. Everything that durable verbs need of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from solocron.effects.locks.writing import Tell, tell
from solocron.errors import LeaseLost, LockLost
from solocron.lease.liveness import Liveness
from solocron.runtime import Runtime
from solocron.stores.contract import Store
from solocron.stores.ward import Ward

__all__ = ["Desk"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A store, a session to hold things by, and proof of being alive."""

    store: Store
    runtime: Runtime
    liveness: Liveness
    owner: str
    take: Callable[[], str]
    """Returns the session under which things are held; each call is followed by one `drop`."""
    drop: Callable[[], None]
    check: Callable[[], None]
    """Raises if nothing may be begun any more: the lease is lost, or a stop was requested."""
    lease: Callable[[], None]
    """Raises only if the lease is lost: a caller that was asked to stop may still record what it did."""
    ward: Callable[[], Ward | None]
    """Returns what the node of the session knows of the store going back in time; None without a node."""
    tell: Tell = tell
    run: str | None = None
    fence: int = 0
    lost: type[LockLost | LeaseLost] = LockLost
    """Raised when the session is no longer live: `LeaseLost` stops a body, and only a run may raise it."""
