"""What a fault is: a number of the matrix, a name, and a deed that says how often it verifiably struck."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from proof.chaos.arena import Arena
from proof.chaos.places import STORES
from solocron.errors import StoreError

__all__ = ["EVERYWHERE", "SERVERS", "SQL", "Fault", "Scene"]

T = TypeVar("T")

EVERYWHERE = frozenset(STORES)
SERVERS = EVERYWHERE - {"sqlite"}
SQL = frozenset(("sqlite", "postgres", "mariadb"))


@dataclass(eq=False, slots=True)
class Scene:
    """Where a fault strikes: the arena, dice of its own, and how often it was asked to before."""

    arena: Arena
    dice: random.Random
    turn: int
    over: threading.Event
    """Set when the time under fire has come to its end: a fault that rests goes on at once."""

    def rest(self, seconds: float) -> None:
        """Let the fault last."""
        self.over.wait(seconds)

    def pick(self, *choices: T) -> T:
        """The first time the first, then the next, and so on."""
        return choices[self.turn % len(choices)]

    def insist(self, call: Callable[[], T], tries: int = 200) -> T:
        """Ask a store that may be away just now until it answers."""
        for _ in range(tries):
            try:
                return call()
            except StoreError:
                threading.Event().wait(0.1)
        return call()


@dataclass(frozen=True, slots=True)
class Fault:
    """`strike` does it, heals it, and returns how often it struck: what was seen, not what was intended."""

    number: str
    name: str
    strike: Callable[[Scene], int]
    stores: frozenset[str] = EVERYWHERE
    disk: bool = False
    """Needs a small disk of the store's own."""

    def possible(self, arena: Arena) -> bool:
        return arena.place.name in self.stores and (not self.disk or arena.place.disk is not None)
