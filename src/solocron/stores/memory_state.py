"""What the clients of a memory store share: documents, the log, the time. No rule of the contract is here."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import ClassVar

from solocron.clock import SECOND, SystemClock
from solocron.model.change import Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import Record
from solocron.stores.contract import Blocked, Doc, HeldBy, HeldByAny, Which
from solocron.stores.documents import holders_of, kind_of
from solocron.stores.drafts import Draft, Row
from solocron.stores.kernel import LogKey

__all__ = ["Kept", "Space", "World"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A document as it is kept: its row, and what selections ask for."""

    row: Row
    holders: frozenset[str] = frozenset()
    handler: str = ""
    pool: str = ""
    due_at: int | None = None

    @classmethod
    def of(cls, doc: Doc, draft: Draft, version: int) -> Kept:
        """Keep what a draft writes."""
        row = Row(draft.name, version, draft.fixed_now, draft.state)
        if not isinstance(doc, Job):
            return cls(row=row, holders=holders_of(doc))
        policy = doc.definition
        return cls(row=row, holders=holders_of(doc), handler=policy.handler, pool=policy.pool, due_at=doc.due_at)


@dataclass(slots=True)
class Space:
    """One namespace of a world."""

    docs: dict[Kind, dict[str, Kept]] = field(default_factory=lambda: {kind: {} for kind in Kind})
    held: dict[tuple[Kind, str], set[str]] = field(default_factory=dict)
    log: dict[LogKey, Record] = field(default_factory=dict)
    aside: dict[tuple[Kind, str], Blocked] = field(default_factory=dict)

    def row(self, kind: Kind, name: str | None) -> Row | None:
        """Return the row of a document; None if there is none."""
        kept = self.docs[kind].get(name or "")
        return None if kept is None else kept.row

    def candidates(self, which: Which) -> Collection[str]:
        """Return names among which are all that a selection finds: those in the index of holders, or all of a kind."""
        if isinstance(which, HeldBy):
            return self.held.get((which.kind, which.session), ())
        if isinstance(which, HeldByAny):
            return {name for (kind, _), held in self.held.items() if kind is which.kind for name in held}
        return self.docs[kind_of(which)]


class World:
    """What the clients of one name share: the documents, the log, the time, and a condition for those who wait."""

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
        self._condition = threading.Condition(threading.Lock())
        self._process = os.getpid()

    @classmethod
    def of(cls, name: str) -> World:
        """Return the world of this name, the same for everyone in this process; without a name, a new one."""
        if not name:
            return cls()
        return cls._named.setdefault(name, cls(name))  # atomic: a mutex could stay locked over a fork

    @property
    def condition(self) -> threading.Condition:
        """The mutex. A fork may have copied it in the hand of a thread that does not exist in the child."""
        if self._process != os.getpid():
            self._condition, self._process = threading.Condition(threading.Lock()), os.getpid()
        return self._condition

    def now(self) -> int:
        """Return the store's time."""
        return self._time() + self.shift
