"""What the clients of a memory store share: rows, the log, the time and a bell. No rule of the contract lives here."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

from solocron.clock import SECOND, SystemClock
from solocron.model.change import Kind, SmallDocument
from solocron.model.codec import decode, encode
from solocron.model.documents.job import Job
from solocron.model.documents.namespace import gate_of
from solocron.model.documents.run import Record
from solocron.model.documents.session import Life, Session
from solocron.stores.contract import All, Blocked, Doc, Due, HeldBy, HeldByAny, Named, Which

__all__ = [
    "LogKey",
    "Row",
    "Space",
    "World",
    "identity_of",
    "kind_of",
    "readable",
    "row_of",
]

LogKey = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A document as it lies in the store: its two texts, its version, and what selections ask for."""

    kind: Kind
    name: str
    fixed: str
    state: str
    version: int
    holders: frozenset[str] = frozenset()
    handler: str = ""
    pool: str = ""
    due_at: int | None = None
    life: Life | None = None
    expires_at: int = 0
    ended_at: int | None = None
    beats: int = 0
    gate: str | None = None


@dataclass(slots=True)
class Space:
    """One namespace of a world."""

    rows: dict[Kind, dict[str, Row]] = field(default_factory=lambda: {kind: {} for kind in Kind})
    held: dict[tuple[Kind, str], set[str]] = field(default_factory=dict)
    log: dict[LogKey, Record] = field(default_factory=dict)
    aside: dict[tuple[Kind, str], Blocked] = field(default_factory=dict)


class World:
    """What the clients of one name share: the documents, the log, the time, and a bell for those who wait."""

    _named: ClassVar[dict[str, World]] = {}

    def __init__(self, name: str = "", *, clock: Callable[[], int] | None = None) -> None:
        system = SystemClock()
        offset = system.wall() - int(system.boot() * SECOND)
        self.name = name
        self.identity = secrets.token_hex(8)
        self.shift = 0
        self.versions = 0
        self.changes = 0
        self.spaces: dict[str, Space] = {}
        # Boot time, set by the wall clock once: a step of the wall clock moves nothing.
        self._time = clock or (lambda: offset + int(system.boot() * SECOND))
        self._bell = threading.Condition(threading.Lock())
        self._process = os.getpid()

    @classmethod
    def of(cls, name: str) -> World:
        """The world of this name, the same for everyone in this process; without a name, a new one."""
        if not name:
            return cls()
        return cls._named.setdefault(name, cls(name))  # atomic: a mutex could stay locked over a fork

    @property
    def bell(self) -> threading.Condition:
        """The mutex. A fork may have copied it in the hand of a thread that does not exist in the child."""
        if self._process != os.getpid():
            self._bell, self._process = threading.Condition(threading.Lock()), os.getpid()
        return self._bell

    def now(self) -> int:
        """The store's time."""
        return self._time() + self.shift


def row_of(doc: Doc, version: int, texts: tuple[str, str] | None = None) -> Row:
    """The row of a document."""
    fixed, state = texts or encode(doc)
    kind, name = identity_of(doc)
    row = Row(kind=kind, name=name, fixed=fixed, state=state, version=version)
    if isinstance(doc, Job):
        holders = frozenset(hold.session for hold in doc.active)
        definition = doc.definition
        return replace(row, holders=holders, handler=definition.handler, pool=definition.pool, due_at=doc.due_at)
    if isinstance(doc, Session):
        return replace(row, life=doc.state, expires_at=doc.expires_at, ended_at=doc.ended_at, beats=doc.beats)
    if doc.kind is Kind.NAMESPACE:
        return replace(row, gate=gate_of(doc))
    return row if doc.session is None else replace(row, holders=frozenset({doc.session}))


def kind_of(which: Which) -> Kind:
    """What kind of documents a selection finds."""
    match which:
        case Named(kind) | HeldBy(_, kind) | HeldByAny(kind) | All(kind):
            return kind
        case Due():
            return Kind.JOB


def identity_of(doc: Doc) -> tuple[Kind, str]:
    """Kind and name of a document."""
    if isinstance(doc, SmallDocument):
        return doc.kind, doc.name
    return Kind.JOB if isinstance(doc, Job) else Kind.SESSION, doc.name


def readable(row: Row) -> Doc | None:
    """The document, or None where its text is broken: one bad document must not hide the others."""
    try:
        return decode(row.kind, row.name, row.fixed, row.state)
    except (ValueError, TypeError, LookupError):
        return None
