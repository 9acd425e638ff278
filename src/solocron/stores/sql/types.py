"""Types that the parts of the family pass to each other: a connection, and the rows that it found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from solocron.stores.contract import Named, Which
from solocron.stores.drafts import Row, Written

__all__ = ["Committed", "SqlLink", "arrange"]


_new = tuple.__new__  # the constructor of a named tuple costs three times as much


@dataclass(slots=True)
class Committed(Written):
    """The outcome of a batch, as a dialect knows it."""

    short: bool = False
    """Whether some records were not appended, because the log had their run and attempt already."""


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
        """Return the rows of a query."""

    @abstractmethod
    def run(self, name: str, params: Mapping[str, Any]) -> int:
        """Run a statement in a transaction of its own; return how many rows it found."""

    @abstractmethod
    def is_stale(self) -> bool:
        """Return whether it has visibly died while it lay idle."""

    @abstractmethod
    def close(self) -> None: ...

    def discard(self) -> None:
        """Close it after something went wrong, without a message that the server could misread."""
        self.close()


def _uncounted(name: str) -> None:
    """An idle connection sends nothing."""


def arrange(which: Which, found: Iterable[tuple[Any, ...]]) -> dict[str, Row | None]:
    """Return the rows in the order of the result; of a named selection also the names that have none."""
    rows: dict[str, Row | None] = {row[0]: _new(Row, row[:4]) for row in found}
    return {name: rows.get(name) for name in which.names} if isinstance(which, Named) else rows
