"""What a mutant is: a named bug, the patch that makes it, the suite that must kill it, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from statistics import median
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
    """What noticed the bug, and how many seeds that took (1 where nothing is drawn), the median of several trials."""

    by: str
    seeds: float = 1


class Suite(Protocol):
    """Something that passes on sound code and is asked to fail on a mutant."""

    @property
    def name(self) -> str: ...

    @property
    def drawn(self) -> bool:
        """Whether another trial would draw other seeds."""
        ...

    def kill(self, mutant: Mutant, trial: int = 0) -> tuple[Killed | None, int]:
        """How it was killed, if it was, and how often the bug had bitten in the run that killed it."""
        ...


@dataclass(frozen=True)
class Verdict:
    """What came of one mutant."""

    mutant: Mutant
    killed: Killed | None
    bites: int
    seconds: float
    """Of computing: a busy machine changes nothing."""

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

    @contextmanager
    def alive(self) -> Iterator[Bites]:
        """The code with the bug in it."""
        bites = Bites()
        with ExitStack() as stack:
            for where, name, bug in self.make(bites):
                stack.enter_context(patch.object(where, name, bug))
            yield bites

    def judge(self, trials: int = 1) -> Verdict:
        """Each trial with seeds of its own must kill it; where nothing is drawn one is enough."""
        began = time.process_time()
        tried = [self.suite.kill(self, trial) for trial in range(trials if self.suite.drawn else 1)]
        deaths = [killed for killed, _ in tried if killed is not None]
        killed = None
        if len(deaths) == len(tried):
            killed = replace(deaths[0], seeds=median(death.seeds for death in deaths))
        return Verdict(self, killed, min(bites for _, bites in tried), time.process_time() - began)


@dataclass(frozen=True)
class Waiting:
    """A bug of a feature that does not exist yet."""

    name: str
    what: str
    invariant: str
    reason: str
