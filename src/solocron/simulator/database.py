"""The simulated store's own side: documents, locks, versions, the log, and a record of every commit in order.

Two profiles. *locking* is a SQL server: what a transaction selects stays locked until it commits, is rolled back, or
idles too long; *swapping* compares versions at commit. Both test the claim's session in the very commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from solocron.clock import SECOND
from solocron.model.change import Absent, Kind, Note
from solocron.model.job import Job
from solocron.model.run import Entry, Op, Record, Status
from solocron.model.session import Life, Session
from solocron.simulator.kernel import Kernel
from solocron.stores.contract import All, Doc, Due, HeldBy, Named, ToSweep, Which, wakes

__all__ = ["Commit", "Database", "Selection", "Write"]


@dataclass(frozen=True, slots=True)
class Write:
    """One document as a client wants it."""

    kind: Kind
    name: str
    before: Doc | Absent
    version: int
    after: Doc | None
    entries: tuple[Entry, ...]


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
    entries: tuple[Entry, ...]


@dataclass(slots=True)
class Selection:
    """What a client selected: documents with their versions, and the store's time after the locks were held."""

    number: int
    client: str
    docs: list[tuple[Doc | Absent, int]]
    now: int
    next_due: int | None = None
    locked: set[tuple[Kind, str]] = field(default_factory=set)
    aborted: bool = False


class Database:
    """The one store of a simulated world."""

    def __init__(self, kernel: Kernel, *, locking: bool, idle_timeout: float) -> None:
        self.kernel = kernel
        self.locking = locking
        self._idle_timeout = idle_timeout
        self.docs: dict[tuple[Kind, str], tuple[Doc, int]] = {}
        self.log: dict[tuple[str, int], Record] = {}
        self.commits: list[Commit] = []
        self.up = True
        self.step = 0.0
        """How far its clock has been stepped, in seconds."""
        self.on_commit: list[Callable[[Commit], None]] = []
        self.on_wake: list[Callable[[], None]] = []
        self._locks: dict[tuple[Kind, str], int] = {}
        self._open: dict[int, Selection] = {}
        self._waiting: list[Callable[[], None]] = []
        self._version = 0
        self._number = 0

    def clock(self) -> int:
        return round((self.kernel.epoch + self.kernel.now + self.step) * SECOND)

    # --- transactions --------------------------------------------------------------------------------------------

    def select(self, client: str, which: Which, done: Callable[[Selection], None], *, lock: bool) -> None:
        """Select for a change; waits for others' locks unless the selection may pass over them."""
        lock = lock and self.locking
        keys = list(self._keys(which))
        if lock:
            if isinstance(which, Due):
                keys = [key for key in keys if key not in self._locks]
            elif any(key in self._locks for key in keys):
                self._waiting.append(lambda: self.select(client, which, done, lock=lock))
                return
        if isinstance(which, Due):
            keys = keys[: which.limit]
        self._number += 1
        chosen = Selection(self._number, client, [self._read(key) for key in keys], self.clock())
        if isinstance(which, Due):
            chosen.next_due = self._next_due(which, {name for _, name in keys})
        if lock and keys:
            chosen.locked = set(keys)
            for key in keys:
                self._locks[key] = chosen.number
            self._open[chosen.number] = chosen
            self.kernel.after(self._idle_timeout, lambda: self._abort(chosen))
        done(chosen)

    def rollback(self, chosen: Selection) -> None:
        self._release(chosen)

    def commit(self, chosen: Selection, writes: list[Write], session: str | None) -> tuple[bool, dict[str, bool]]:
        """Apply what still may be applied; answers whether the session is live, and per name what was applied."""
        if chosen.aborted:
            return True, {write.name: False for write in writes}
        try:
            if session is not None:
                held = self.docs.get((Kind.SESSION, session))
                if held is None or not isinstance(held[0], Session) or held[0].state is not Life.LIVE:
                    return False, {}
            return True, {write.name: self._apply(chosen.client, write) for write in writes}
        finally:
            self._release(chosen)

    def restart(self) -> None:
        """What was not committed is gone."""
        for chosen in list(self._open.values()):
            self._abort(chosen)

    def _apply(self, client: str, write: Write) -> bool:
        key = (write.kind, write.name)
        _, version = self.docs.get(key, (None, 0))
        if version != write.version:
            return False
        for entry in write.entries:
            if entry.op is Op.OPEN and (entry.record.run, entry.record.attempt) in self.log:
                raise AssertionError(f"I12: a second record of {entry.record.run} attempt {entry.record.attempt}")
        commit = Commit(
            self.kernel.now, self.clock(), client, write.kind, write.name, write.before, write.after, write.entries
        )
        if write.after is None:
            self.docs.pop(key, None)
        elif write.after is not write.before:
            self._version += 1
            self.docs[key] = (write.after, self._version)
        for entry in write.entries:
            self._append(entry)
        self.commits.append(commit)
        for observer in self.on_commit:
            observer(commit)
        if wakes(write.before, write.after):
            for wake in self.on_wake:
                wake()
        return True

    def _append(self, entry: Entry) -> None:
        key = (entry.record.run, entry.record.attempt)
        if entry.op is Op.OPEN:
            self.log[key] = entry.record
        else:
            known = self.log.get(key)
            if known is not None and known.status is Status.RUNNING:
                self.log[key] = entry.record

    def _abort(self, chosen: Selection) -> None:
        if chosen.number in self._open:
            chosen.aborted = True
            self._release(chosen)

    def _release(self, chosen: Selection) -> None:
        if self._open.pop(chosen.number, None) is None:
            return
        for key in chosen.locked:
            if self._locks.get(key) == chosen.number:
                del self._locks[key]
        waiting, self._waiting = self._waiting, []
        for again in waiting:
            self.kernel.after(0, again)

    # --- selecting -----------------------------------------------------------------------------------------------

    def read(self, which: Which) -> list[Doc]:
        docs = [self.docs[key][0] for key in self._keys(which) if key in self.docs]
        return docs[: which.limit] if isinstance(which, Due) else docs

    def holders(self) -> frozenset[str]:
        found = {hold.session for doc, _ in self.docs.values() if isinstance(doc, Job) for hold in doc.active}
        return frozenset(
            found | {doc.session for doc, _ in self.docs.values() if isinstance(doc, Note) and doc.session}
        )

    def _read(self, key: tuple[Kind, str]) -> tuple[Doc | Absent, int]:
        return self.docs.get(key) or (Absent(*key), 0)

    def _keys(self, which: Which) -> Iterator[tuple[Kind, str]]:
        if isinstance(which, Named):
            for name in which.names:
                yield which.kind, name
            return
        now = self.clock()
        if isinstance(which, Due):
            due = [doc for doc in self._due_jobs(which) if doc.due_at is not None and doc.due_at <= now]
            for job in sorted(due, key=lambda job: (job.due_at or 0, job.name)):
                yield Kind.JOB, job.name
            return
        for (kind, name), (doc, _) in sorted(self.docs.items(), key=lambda item: item[0]):
            if _selected(which, kind, doc, now):
                yield kind, name

    def _due_jobs(self, which: Due) -> list[Job]:
        return [
            doc
            for doc, _ in self.docs.values()
            if isinstance(doc, Job)
            and doc.due_at is not None
            and doc.definition.handler in which.handlers
            and doc.definition.pool in which.pools
            and doc.name not in which.exclude
        ]

    def _next_due(self, which: Due, chosen: set[str]) -> int | None:
        return min((doc.due_at or 0 for doc in self._due_jobs(which) if doc.name not in chosen), default=None)


def _selected(which: Any, kind: Kind, doc: Doc, now: int) -> bool:
    if isinstance(which, HeldBy):
        if which.kind is not kind:
            return False
        if isinstance(doc, Job):
            return any(hold.session == which.session for hold in doc.active)
        return isinstance(doc, Note) and doc.session == which.session
    if isinstance(which, ToSweep):
        return isinstance(doc, Session) and (
            doc.state is Life.DEAD or (doc.state is Life.LIVE and doc.expires_at <= now)
        )
    return isinstance(which, All) and which.kind is kind and (not which.after or doc.name > which.after)
