"""The reference store: a dict and a mutex. What it does is what every other store has to do.

Documents are kept as the two texts of `model.codec`, so that nothing lives here that could not live in a database.
`memory://name` is one world shared by every client of that name in this process; `memory://` alone is private to
the client that made it. Nothing of it outlives the process.

What the contract leaves open is settled here, and the published suite holds the others to it:

- Changes are computed without the mutex and committed, the whole batch at once, with it: each document only if it is
  still the one that was read, all of them only if the session is live. What was lost to another client is tried
  again; a document that has left the selection by then is not handed to the change any more.
- `Named` answers in the order of the names; a deleted document is answered as `Absent`.
- A record is appended once: one whose run and attempt are in the log already is left out, the rest of its change is
  written, and the result names the first one, unless both are equal.
- Records of a query lie in `since <= recorded_at < until`, in descending order of (recorded_at, run, attempt).
- A document that was set aside and is written again takes part again at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from heapq import nsmallest

from solocron.clock import SECOND
from solocron.model.change import Absent, Change, Kind
from solocron.model.codec import decode, encode
from solocron.model.documents.namespace import NAME
from solocron.model.documents.run import Record
from solocron.model.documents.session import Life
from solocron.stores.contract import (
    All,
    Applied,
    Blocked,
    Capabilities,
    ChangeFn,
    Check,
    Doc,
    Due,
    Gate,
    HeldBy,
    HeldByAny,
    Named,
    Page,
    Query,
    Result,
    Tier,
    Verdict,
    Which,
    wakes,
)
from solocron.stores.log import page_within
from solocron.stores.memory_state import (
    Row,
    Space,
    World,
    identity_of,
    kind_of,
    readable,
    row_of,
)
from solocron.stores.paging import read_page

__all__ = ["MemoryStore", "World"]

_ROUNDS = 8
"""How often an update tries again what it lost to others before it calls it contended."""
_ASIDE = 10 * SECOND
_ASIDE_MOST = 3600 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a change wants of one document, computed without the mutex."""

    name: str
    row: Row | None
    doc: Doc | Absent
    change: Change | None = None
    texts: tuple[str, str] | None = None
    error: str | None = None

    @property
    def writes(self) -> bool:
        """Whether there is anything to write: returning the very document that came in, without records, is nothing."""
        return self.change is not None and (self.change.doc is not self.doc or bool(self.change.records))


class _Refused(Exception):
    """This document's change cannot be written; the others' can."""


class MemoryStore:
    """One client of a world. `shift_clock` moves the time of the world, and so of all its clients."""

    def __init__(self, name: str = "", *, namespace: str = "default", world: World | None = None) -> None:
        self.world = world or World.of(name)
        self.statements: Counter[str] = Counter()
        self._namespace = namespace
        self._own = 0
        self._seen = self.world.changes

    @property
    def url(self) -> str:
        return f"memory://{self.world.name}"

    @property
    def namespace(self) -> str:
        return self._namespace

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            tier=Tier.A, why="one process, one mutex; nothing outlives the process", notifies=True, shared=False
        )

    def open(self, *, read_only: bool = False) -> None:
        """There is nothing to connect to."""

    def close(self) -> None:
        """There is nothing to close; the documents belong to the world."""

    def clock(self) -> int:
        with self._locked("clock"):
            return self.world.now()

    # --- documents

    def identity(self) -> str:
        with self._locked("identity"):
            return self.world.identity

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        kind = kind_of(which)
        with self._locked("select") as space:
            decided_at = now = self.world.now()
            if not self._is_live(space, session):
                return Applied(results=(), now=decided_at, alive=False)
            rows = self._select(space, which, now)
        results = {name: Result(name, Verdict.CONTENDED) for name in rows}
        holds, seen = None, None
        for _ in range(_ROUNDS):
            if not rows:
                break
            drafts = [self._draft(kind, name, row, change, now) for name, row in rows.items()]
            with self._locked("compare") as space:
                if not self._is_live(space, session):
                    if any(result.verdict is Verdict.APPLIED for result in results.values()):
                        break  # written while the session lived; the next call will tell
                    return Applied(results=(), now=decided_at, alive=False)
                if not self._is_open(space, session, gate) and any(draft.writes for draft in drafts):
                    if any(result.verdict is Verdict.APPLIED for result in results.values()):
                        break
                    return Applied(results=(), now=decided_at, shut=True)
                now = self.world.now()
                rows, wrote = {}, False
                for draft in drafts:
                    if self._is_current(space, kind, draft):
                        results[draft.name] = self._commit(space, kind, draft, now)
                        wrote = wrote or draft.writes
                    elif self._selects(space, which, draft.name, now):
                        rows[draft.name] = space.rows[kind].get(draft.name)
                    else:
                        del results[draft.name]
                self.statements["commit"] += wrote
                if kind is Kind.SESSION and len(results) == 1 and wrote:
                    holds = bool(space.held.get((Kind.JOB, next(iter(results)))))
                    seen = (self._gate(space) or "", self.world.identity)
        following = None
        if isinstance(which, Due):
            with self._locked("next_due") as space:
                following = self._next_due(space, replace(which, exclude=which.exclude | results.keys()))
        return Applied(results=tuple(results.values()), now=decided_at, next_due=following, holds=holds, gate=seen)

    def read(self, which: Which) -> tuple[Doc, ...]:
        return read_page(which, self._read)

    def _read(self, which: Which) -> list[tuple[str, Doc | None]]:
        with self._locked("select") as space:
            rows = self._select(space, which, self.world.now())
        return [(name, None if row is None else readable(row)) for name, row in rows.items()]

    def holders(self) -> frozenset[str]:
        with self._locked("holders") as space:
            return frozenset(session for _, session in space.held)

    # --- the log

    def names(self, kind: Kind, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        with self._locked("names") as space:
            return tuple(nsmallest(limit, (name for name in space.rows[kind] if name > after)))

    def history(self, query: Query) -> Page:
        with self._locked("history") as space:
            return page_within(query, space.log.values())

    def tally(self, since: int) -> Mapping[str, int]:
        counts: Counter[str] = Counter()
        with self._locked("tally") as space:
            for record in space.log.values():
                if record.recorded_at >= since:
                    counts[record.status] += record.count
        return counts

    def prune(self, before: int, limit: int) -> int:
        with self._locked("prune") as space:
            self.statements["commit"] += 1
            gone = [(record.recorded_at, key) for key, record in space.log.items() if record.recorded_at < before]
            oldest = nsmallest(limit, gone)
            for _, key in oldest:
                del space.log[key]
            for row in list(space.rows[Kind.SESSION].values()):
                if row.life is Life.SWEPT and row.ended_at is not None and row.ended_at < before:
                    self._put(space, Kind.SESSION, row.name, None)
            return len(oldest)

    # --- documents that were set aside

    def blocked(self) -> Sequence[Blocked]:
        with self._locked("blocked") as space:
            now = self.world.now()
            return [aside for _, aside in sorted(space.aside.items()) if aside.until > now]

    def unblock(self, kind: Kind, name: str) -> bool:
        with self._locked("unblock") as space:
            found = space.aside.pop((kind, name), None) is not None
            if found:
                self._ring(everybody=True)
            return found

    # --- waking up, looking after

    def signal(self) -> None:
        with self._locked("signal"):
            self._ring(everybody=True)

    def wait(self, timeout: float) -> bool:
        bell = self.world.bell
        with bell:
            seen = self._seen  # a copy: several threads of one client may wait
            woken = bell.wait_for(lambda: self.world.changes - self._own != seen, timeout)
            self._seen = self.world.changes - self._own
            return woken

    def checks(self) -> Sequence[Check]:
        return [
            Check("store", "WARN", f"{self.url} lives and dies with this process", "give a store that lasts: --store")
        ]

    def shift_clock(self, by: int) -> None:
        with self._locked("shift_clock"):
            self.world.shift += by
            self._ring(everybody=True)

    # --- the parts of an update; all but the draft run with the mutex in hand

    @contextmanager
    def _locked(self, statement: str) -> Iterator[Space]:
        with self.world.bell:
            self.statements[statement] += 1
            yield self.world.spaces.setdefault(self._namespace, Space())

    def _is_live(self, space: Space, session: str | None) -> bool:
        if session is None:
            return True
        row = space.rows[Kind.SESSION].get(session)
        return row is not None and row.life is Life.LIVE

    def _gate(self, space: Space) -> str | None:
        row = space.rows[Kind.NAMESPACE].get(NAME)
        return None if row is None else row.gate

    def _is_open(self, space: Space, session: str | None, gate: Gate | None) -> bool:
        if gate is None or session is None:
            return True
        row = space.rows[Kind.SESSION].get(session)
        if row is None or row.beats < gate.beats:
            return False
        return self._gate(space) in [f"{word} {self.world.identity}" for word in gate.words]

    def _select(self, space: Space, which: Which, now: int) -> dict[str, Row | None]:
        """The rows of a selection in the order of its answer; None where a name has no document."""
        rows = space.rows[kind_of(which)]
        if isinstance(which, Named):
            return {name: rows.get(name) for name in which.names}
        names: Iterable[str] = rows
        if isinstance(which, HeldBy):
            names = space.held.get((which.kind, which.session), ())
        elif isinstance(which, HeldByAny):
            names = {name for (kind, _), held in space.held.items() if kind is which.kind for name in held}
        found = [rows[name] for name in names if self._selects(space, which, name, now)]
        if isinstance(which, Due):
            ordered = nsmallest(which.limit, found, key=lambda row: (row.due_at or 0, row.name))
        else:
            ordered = sorted(found, key=lambda row: row.name)
        return {row.name: row for row in (ordered[: which.limit] if isinstance(which, All) else ordered)}

    def _selects(self, space: Space, which: Which, name: str, now: int) -> bool:
        """Whether the document of this name, as it is, belongs to the selection."""
        row = space.rows[kind_of(which)].get(name)
        if row is None or isinstance(which, Named):
            return isinstance(which, Named)
        match which:
            case HeldBy(session):
                return session in row.holders
            case HeldByAny():
                return bool(row.holders)
            case All(_, after):
                return name > after
            case Due():
                return self._fits(which, row) and row.due_at is not None and self._ready_at(space, row) <= now

    def _fits(self, which: Due, row: Row) -> bool:
        return row.handler in which.handlers and row.pool in which.pools and row.name not in which.exclude

    def _ready_at(self, space: Space, row: Row) -> int:
        """When a job that is due some time can be selected: not before it is let out again, if it was set aside."""
        aside = space.aside.get((row.kind, row.name))
        return max(row.due_at or 0, aside.until if aside else 0)

    def _next_due(self, space: Space, which: Due) -> int | None:
        rows = space.rows[Kind.JOB].values()
        return min(
            (self._ready_at(space, row) for row in rows if row.due_at is not None and self._fits(which, row)),
            default=None,
        )

    def _draft(self, kind: Kind, name: str, row: Row | None, change: ChangeFn, now: int) -> Draft:
        """What the change wants; whatever is wrong with one document stays with that document."""
        doc: Doc | Absent = Absent(kind, name)
        try:
            if row is not None:
                doc = decode(kind, name, row.fixed, row.state)
            wanted = change(doc, now)
            new = None if wanted is None or wanted.doc is doc else wanted.doc
            if new is not None and identity_of(new) != (kind, name):
                raise _Refused(f"the change of {kind} {name!r} answered with {' '.join(identity_of(new))!r}")
            return Draft(name=name, row=row, doc=doc, change=wanted, texts=None if new is None else encode(new))
        except Exception as error:  # noqa: BLE001 - a poisoned document must not stop the others, whatever it raises
            return Draft(name=name, row=row, doc=doc, error=f"{type(error).__name__}: {error}")

    def _is_current(self, space: Space, kind: Kind, draft: Draft) -> bool:
        """Whether the document is still the very one that the change was computed from."""
        row = space.rows[kind].get(draft.name)
        return (row and row.version) == (draft.row and draft.row.version)

    def _commit(self, space: Space, kind: Kind, draft: Draft, now: int) -> Result:
        """Write one document and append its records."""
        change = draft.change
        if draft.error is not None:
            return self._set_aside(space, kind, draft, draft.error, now)
        if change is None:
            return Result(draft.name, Verdict.DECLINED, draft.doc)
        duplicates = self._append(space, change.records)
        if change.doc is not draft.doc:
            self.world.versions += 1
            row = None if change.doc is None else row_of(change.doc, self.world.versions, draft.texts)
            self._put(space, kind, draft.name, row)
            if wakes(draft.doc, change.doc):
                self._ring()
            space.aside.pop((kind, draft.name), None)
        doc = Absent(kind, draft.name) if change.doc is None else change.doc
        return Result(draft.name, Verdict.APPLIED, doc, change.answer, duplicates=duplicates)

    def _append(self, space: Space, records: tuple[Record, ...]) -> tuple[Record, ...]:
        """Append the records; return those that were there already and differ."""
        firsts = [(space.log.setdefault((record.run, record.attempt), record), record) for record in records]
        return tuple(first for first, record in firsts if first != record)

    def _put(self, space: Space, kind: Kind, name: str, new: Row | None) -> None:
        """Replace, create or delete a document, and the index of holders with it."""
        old = space.rows[kind].pop(name, None)
        for session in old.holders if old else ():
            names = space.held[kind, session]
            names.discard(name)
            if not names:
                del space.held[kind, session]
        if new is not None:
            space.rows[kind][name] = new
            for session in new.holders:
                space.held.setdefault((kind, session), set()).add(name)

    def _set_aside(self, space: Space, kind: Kind, draft: Draft, reason: str, now: int) -> Result:
        """Keep a document that fails on its own out of the way, longer each time."""
        if draft.row is not None:
            before = space.aside.get((kind, draft.name))
            times = before.times + 1 if before else 1
            until = now + min(_ASIDE << min(times - 1, 16), _ASIDE_MOST)
            space.aside[kind, draft.name] = Blocked(kind, draft.name, until, reason, times)
        return Result(draft.name, Verdict.BLOCKED, error=reason)

    def _ring(self, *, everybody: bool = False) -> None:
        """Wake the waiting clients; what this one has changed itself is no news to it."""
        self.world.changes += 1
        self._own += not everybody
        self.world.bell.notify_all()
