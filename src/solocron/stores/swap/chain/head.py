"""The head of a chain as one client knows it.

No lock is kept over a call: what a thread missed, it finds by the number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from solocron.errors import StoreRefused, StoreUnavailable
from solocron.stores.swap.chain.objects import Objects
from solocron.stores.swap.chain.roots import Roots
from solocron.stores.swap.chain.state import ChainPace, ChainState
from solocron.stores.swap.chain.text import Broken, ChainCommit, commit_name

__all__ = ["ChainHead"]

_LOADS = 5


class ChainHead:
    """Reads commits, applies them in their order, and knows for how long the result can be believed."""

    def __init__(self, objects: Objects, folder: str, pace: ChainPace, boot: Callable[[], float]) -> None:
        self.pace = pace
        self.boot = boot
        self.roots = Roots(objects, folder, pace)
        self._objects = objects
        self._folder = folder
        self.begin()

    def begin(self) -> None:
        """Begin anew, as after a fork."""
        self.mutex = threading.Lock()
        self.state: ChainState | None = None

    def name(self, number: int) -> str:
        return self._folder + commit_name(number)

    def look(self) -> ChainState:
        """Apply every commit that is there; return the state."""
        while True:
            state = self.known()
            with self.mutex:
                number, seen = state.number, state.seen
            began = self.boot()
            found = self._objects.get(self.name(number + 1))
            if self.trusted(state, number, seen) is None:
                continue
            if found is None:
                with self.mutex:
                    state.saw_head(began)
                return state
            self.arrived(state, number + 1, found)

    def arrived(self, state: ChainState, number: int, content: bytes) -> None:
        """Apply a commit that was read, unless another thread has done so."""
        try:
            commit = ChainCommit.of(content)
        except Broken as broken:
            raise self._broken(self.name(number), broken) from None
        with self.mutex:
            state.apply(number, commit)

    def trusted(self, state: ChainState, number: int, seen: float) -> float | None:
        """Return since when replies about the commit after a number can be believed; None: begin again.

        A client that slept may be told of a number that was deleted meanwhile: nothing is there, or what another
        sleeper has left there. `seen` is what was known for that very number.
        """
        asked = self.boot()
        if asked - seen <= self.pace.trusted:
            return seen
        if self.roots.reached(self.pace.releasing(number + 1)):
            with self.mutex:
                if self.state is state:
                    self.state = None
            return None
        with self.mutex:
            state.saw_head(asked)
        return asked

    def known(self) -> ChainState:
        """Return the state of this client, read from the newest root where it has none."""
        state = self.state
        for _ in range(_LOADS):
            if state is not None:
                return state
            loaded = self._loaded()
            with self.mutex:
                if self.state is None:
                    self.state = loaded
                state = self.state
        raise StoreUnavailable(
            f"{self._objects.url}: the newest snapshot could not be read whole; nothing was written."
        )

    def _loaded(self) -> ChainState | None:
        began = self.boot()
        try:
            number = self.roots.newest()
            root = self.roots.get(number) if number else None
            if number and root is None:
                return None
            entries = {} if root is None else self.roots.entries(root)
        except Broken as broken:
            raise self._broken("a snapshot", broken) from None
        return ChainState(self.pace, root=number, entries=entries, seen=began)

    def _broken(self, what: str, broken: Broken) -> StoreRefused:
        return StoreRefused(
            f"{self._objects.url}: {what} is not what Solocron wrote ({broken}); nothing was written. Upgrade "
            "Solocron, if a newer one wrote it; else restore the folder or take another namespace."
        )
