"""Selections and commits of the simulated store, and how to forget a commit."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from solocron.model.change import Absent, Kind
from solocron.model.documents.run import Record
from solocron.stores.contract import Doc

__all__ = ["Commit", "Key", "LogKey", "Past", "SimSelection", "Undo"]

Key = tuple[Kind, str]
LogKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Commit:
    """One document's change as the store accepted it."""

    at: float
    now: int
    client: str
    kind: Kind
    name: str
    before: Doc | Absent
    after: Doc | None
    records: tuple[Record, ...]
    decided: int
    """Store time that the change was given."""
    selected: float
    """Time of the world at that moment."""


@dataclass(slots=True)
class SimSelection:
    """Documents that a client selected, with their versions, and the store's time after the locks were held."""

    number: int
    client: str
    docs: list[tuple[Doc | Absent, int]]
    now: int
    at: float
    next_due: int | None = None
    locked: frozenset[Key] = frozenset()
    aborted: bool = False


@dataclass(frozen=True, slots=True)
class Undo:
    """Everything needed to forget one commit."""

    at: float
    key: Key
    doc: tuple[Doc, int] | None
    appended: tuple[LogKey, ...]


@dataclass(slots=True)
class Past:
    """The last commits, for stores that do not keep their promises."""

    seconds: float
    undo: deque[Undo] = field(default_factory=deque)
