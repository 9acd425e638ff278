"""How a wrong store says which test of the suite must catch it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from solocron.stores.memory import MemoryStore

__all__ = ["WRONG", "a_moment", "breaks"]

WRONG: dict[type[MemoryStore], tuple[str, ...]] = {}
"""Every wrong store, and the tests that fail on it."""

S = TypeVar("S", bound=type[MemoryStore])


def breaks(*tests: str) -> Callable[[S], S]:
    """This store breaks one promise; each of these tests must notice."""

    def register(store: S) -> S:
        WRONG[store] = tests
        return store

    return register


def a_moment() -> None:
    """Long enough for every rival to get in between; where a wrong store has its gap."""
    threading.Event().wait(0.01)
