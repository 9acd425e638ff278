"""What the parts of the family hand to each other: a connection, what was found with it, what became of a batch."""

from __future__ import annotations

import selectors
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from solocron.stores.contract import Named, Which
from solocron.stores.sql.drafts import Row

__all__ = ["Outcome", "Poisoned", "Retry", "Selection", "SqlLink", "UnknownOutcome", "arrange", "has_spoken"]


# Not `select`, which refuses descriptors above 1,023; only Windows, where it has no such limit, lacks `poll`.
_Look: type[selectors.BaseSelector] = getattr(selectors, "PollSelector", selectors.SelectSelector)


class Retry(Exception):
    """The database settled a conflict against us (deadlock, serialization failure, lock timeout); nothing written."""


class Poisoned(Exception):
    """The database refused the data of a batch: nothing was written, and one of its documents is to blame."""


class UnknownOutcome(Exception):
    """The connection broke while committing: the batch may or may not be in the store."""


class SqlLink(ABC):
    """One connection that runs statements by name and counts them; its errors are the family's or the contract's."""

    fresh = True
    _count: Callable[[str], None]

    def lend(self, count: Callable[[str], None]) -> None:
        """Count statements for the store that uses it now."""
        self._count = count

    def back(self) -> None:
        """Forget the store that has used it: others may be next, and an idle connection keeps no store alive."""
        self._count = _uncounted

    @abstractmethod
    def all(self, name: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a query."""

    @abstractmethod
    def run(self, name: str, params: Mapping[str, Any]) -> int:
        """The number of rows that a statement of its own transaction found."""

    @abstractmethod
    def is_stale(self) -> bool:
        """Whether it has visibly died while it lay idle."""

    @abstractmethod
    def close(self) -> None: ...

    def discard(self) -> None:
        """Close it after something went wrong: who knows what the other side makes of a goodbye."""
        self.close()


@dataclass(slots=True)
class Selection:
    """What was found: rows by name in the order of the answer (None: no such document), and the store's time."""

    rows: dict[str, Row | None]
    now: int
    """When it is decided; of what is recalled, a time that the store has surely reached."""
    alive: bool = True
    next_due: int | None = None
    recalled: bool = False
    """Not asked of the store but remembered from our own last write: only good with a version to compare."""


@dataclass(slots=True)
class Outcome:
    """What became of a batch: whether the session was live, and which documents others had changed."""

    alive: bool = True
    lost: set[str] = field(default_factory=set)
    short: bool = False
    """Whether some records were not appended, because the log had their run and attempt already."""
    holds: bool | None = None
    """Of a session that was renewed: whether it holds any job, if the statement could tell."""
    told: int = 0
    """Of what was recalled: the store's time, as the statement that wrote it told it."""
    shut: bool = False
    """Whether the gate did not stand open: then nothing was written."""
    gate: tuple[str, str] | None = None
    """Of a session that was renewed: what the namespace's document bears, and which server says so, if it was told."""


def _uncounted(name: str) -> None:
    """An idle connection sends nothing."""


def has_spoken(descriptor: int) -> bool:
    """Whether a socket can be read, or is at its end, without waiting."""
    with _Look() as look:
        look.register(descriptor, selectors.EVENT_READ)
        return bool(look.select(0))


def arrange(which: Which, found: Iterable[tuple[Any, ...]]) -> dict[str, Row | None]:
    """The rows in the order of the answer; of a named selection also the names that have none."""
    rows: dict[str, Row | None] = {row[0]: (row[0], row[1], row[2], row[3]) for row in found}
    return {name: rows.get(name) for name in which.names} if isinstance(which, Named) else rows
