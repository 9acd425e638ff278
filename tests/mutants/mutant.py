"""What a mutant is: a named bug, the patch that makes it, the suite that must kill it, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from unittest.mock import patch

__all__ = ["Bites", "Killed", "Mutant", "Patches", "Suite", "Verdict", "Waiting"]


class Bites:
    """How often the patched code made, or would have made, a difference."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, bitten: object = True) -> None:
        self.count += bool(bitten)


Patches = list[tuple[Any, str, Any]]


@dataclass(frozen=True)
class Killed:
    """What noticed the bug, and how many seeds that took (1 where nothing is drawn)."""

    by: str
    seeds: int = 1


class Suite(Protocol):
    """Something that passes on sound code and is asked to fail on a mutant."""

    @property
    def name(self) -> str: ...

    def kill(self, mutant: Mutant) -> tuple[Killed | None, int]:
        """How it was killed, if it was, and how often the bug had bitten in the run that killed it."""
        ...


@dataclass(frozen=True)
class Verdict:
    """What came of one mutant."""

    mutant: Mutant
    killed: Killed | None
    bites: int
    seconds: float

    @property
    def ok(self) -> bool:
        return self.killed is not None and self.bites > 0


@dataclass(frozen=True)
class Mutant:
    """A bug of the list: what it is, the invariant named for it, what it replaces, and who must kill it."""

    name: str
    what: str
    invariant: str
    make: Callable[[Bites], Patches]
    suite: Suite
    quick: bool = field(default=True)
    """Whether it dies within a second or two, and so in every run of the tests."""

    @contextmanager
    def alive(self) -> Iterator[Bites]:
        """The code with the bug in it."""
        bites = Bites()
        with ExitStack() as stack:
            for where, name, bug in self.make(bites):
                stack.enter_context(patch.object(where, name, bug))
            yield bites

    def judge(self) -> Verdict:
        began = time.perf_counter()
        killed, bites = self.suite.kill(self)
        return Verdict(self, killed, bites, time.perf_counter() - began)


@dataclass(frozen=True)
class Waiting:
    """A bug of a feature that does not exist yet."""

    name: str
    what: str
    invariant: str
    reason: str
