"""`Objects`: everything that a service must be able to do to carry a commit chain; and the reference in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from solocron.clock import SECOND, SystemClock
from solocron.stores.contract import Capabilities, Check, Tier
from solocron.stores.swap.key_store import KeyLimits

__all__ = ["MemoryObjects", "Objects", "SharedObjects"]


class Objects(Protocol):
    """One client of a folder of objects; safe to call from any thread.

    A call that certainly did nothing raises `StoreUnavailable`, one that settings or rights forbid `StoreRefused`.
    """

    @property
    def limits(self) -> KeyLimits:
        """Return what one commit may hold; no object is larger than `bytes` and a quarter."""
        ...

    @property
    def url(self) -> str:
        """Return the address with secrets masked."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...

    def open(self) -> None:
        """Connect, and refuse a service that cannot keep the promises. Idempotent."""
        ...

    def close(self) -> None: ...

    def create(self, name: str, content: bytes) -> bool:
        """Create an object; False: one of that name is there. Raise `Lost` if that is not known.

        Of any number of callers at once one gets True. The name may have been taken by an earlier try of this call.
        """
        ...

    def get(self, name: str) -> bytes | None:
        """Return the content of an object, None if it is not there; sees every creation that was replied to."""
        ...

    def names(self, prefix: str, limit: int) -> Sequence[str]:
        """Return the first names that begin with a prefix, in their order. They may be those of a while ago."""
        ...

    def delete(self, name: str) -> None:
        """Delete an object; one that is not there is no error."""
        ...

    def now(self) -> int:
        """Return a time in microseconds that the service's clock has reached, from its last replies; 0: none told."""
        ...

    def sharpen(self, within: int) -> None:
        """Make sure that `now` is behind the service's clock by no more than so many microseconds."""
        ...

    def checks(self) -> Sequence[Check]:
        """Return what `doctor` shows of this service."""
        ...


class SharedObjects:
    """What the clients of one memory object store share: the objects, a mutex, and the time."""

    def __init__(self, clock: Callable[[], int] | None = None) -> None:
        system = SystemClock()
        offset = system.wall() - int(system.boot() * SECOND)
        self.mutex = threading.Lock()
        self.objects: dict[str, bytes] = {}
        self.listed: list[set[str]] = [set()]
        """The names after each change, the latest last: a listing may show an old one."""
        # Boot time, set by the wall clock once: a step of the wall clock moves nothing.
        self.clock = clock or (lambda: offset + int(system.boot() * SECOND))


class MemoryObjects:
    """One client of objects in memory, the reference for every other one. They die with their process."""

    limits = KeyLimits(keys=1_000, bytes=4_000_000, value=1_000_000)
    url = "objects://memory"

    def __init__(self, shared: SharedObjects | None = None, *, behind: int = 0) -> None:
        """`behind`: by how many changes listings lag."""
        self.shared = shared or SharedObjects()
        self.behind = behind

    @property
    def capabilities(self) -> Capabilities:
        why = "one process, one mutex; nothing outlives the process"
        return Capabilities(tier=Tier.A, why=why, notifies=True, shared=False)

    def open(self) -> None:
        """Do nothing: it is always open."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def create(self, name: str, content: bytes) -> bool:
        with self.shared.mutex:
            if name in self.shared.objects:
                return False
            self.shared.objects[name] = content
            self._changed()
            return True

    def get(self, name: str) -> bytes | None:
        return self.shared.objects.get(name)

    def names(self, prefix: str, limit: int) -> Sequence[str]:
        with self.shared.mutex:
            listed = self.shared.listed[max(0, len(self.shared.listed) - 1 - self.behind)]
            return sorted(name for name in listed if name.startswith(prefix))[:limit]

    def delete(self, name: str) -> None:
        with self.shared.mutex:
            if self.shared.objects.pop(name, None) is not None:
                self._changed()

    def _changed(self) -> None:
        listed = self.shared.listed
        if self.behind:
            listed.append(set(self.shared.objects))
            del listed[: -self.behind - 1]
        else:
            listed[:] = [set(self.shared.objects)]

    def now(self) -> int:
        return self.shared.clock()

    def sharpen(self, within: int) -> None:
        """Do nothing: the time is exact."""

    def checks(self) -> Sequence[Check]:
        return [Check("store", "WARN", f"{self.url} lives and dies with this process", "take a service that lasts")]
