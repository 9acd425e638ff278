"""The reference store: dictionaries and a mutex. What it does is what every other store has to do.

Documents are kept as texts, so that nothing is here that could not be in a database. `memory://name` is one world,
shared by every client of that name in this process; `memory://` alone is private to the client that made it.

What the contract leaves open is decided here and in the kernel, and the published suite holds the others to it:

- Changes are computed without the mutex and committed, the whole batch at once, with it: each document only if it is
  still the one that was read, all of them only if the session is live. What was lost to another client is tried
  again; a document that has left the selection by then is not passed to the change any more.
- `Named` returns documents in the order of the names; a deleted document is returned as `Absent`.
- A record is appended once: one whose run and attempt are in the log already is left out, the rest of its change is
  written, and the result names the first one, unless both are equal.
- Records of a query lie in `since <= recorded_at < until`, in descending order of (recorded_at, run, attempt).
- A document that was set aside and is written again takes part again at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from heapq import nsmallest

from solocron.model.change import Kind
from solocron.model.documents.namespace import NAME
from solocron.model.documents.run import Record
from solocron.stores.contract import All, Blocked, Capabilities, Check, Due, Gate, Named, RecentSessions, Tier, Which
from solocron.stores.documents import gate_in, kind_of
from solocron.stores.drafts import Draft, Row, Selection, Written, is_selected, readable
from solocron.stores.kernel import LogKey, PlainStore, admits, is_live
from solocron.stores.memory_state import Kept, Space, World

__all__ = ["MemoryStore", "World"]


class MemoryStore(PlainStore):
    """One client of a world. `shift_clock` moves the time of the world, and so of all its clients."""

    def __init__(self, name: str = "", *, namespace: str = "default", world: World | None = None) -> None:
        self.world = world or World.of(name)
        self.statements: Counter[str] = Counter()
        self.namespace = namespace
        self._own = 0
        self._seen = self.world.changes

    @property
    def url(self) -> str:
        return f"memory://{self.world.name}"

    @property
    def capabilities(self) -> Capabilities:
        why = "one process, one mutex; nothing outlives the process"
        return Capabilities(tier=Tier.A, why=why, notifies=True, shared=False)

    def open(self, *, read_only: bool = False) -> None: ...
    def close(self) -> None: ...

    def clock(self) -> int:
        with self._locked("clock"):
            return self.world.now()

    def identity(self) -> str:
        with self._locked("identity"):
            return self.world.identity

    # --- finding documents; all but the first two run with the mutex in hand

    def scan(self, kind: Kind, after: str = "", limit: int | None = None) -> Sequence[Row]:
        with self._locked("scan") as space:
            return [kept.row for kept in self._select(space, All(kind, after, limit), 0).values() if kept is not None]

    def select(self, which: Which, session: str | None = None) -> Selection:
        with self._locked("select") as space:
            now = self.world.now()
            alive = session is None or self._is_live(space, session)
            found = self._select(space, which, now)
            following = None
            if isinstance(which, Due):
                following = self._next_due(space, replace(which, exclude=which.exclude | found.keys()))
            return Selection(
                {name: None if kept is None else kept.row for name, kept in found.items()}, now, alive, following
            )

    def _select(self, space: Space, which: Which, now: int) -> dict[str, Kept | None]:
        """Return the documents of a selection in the order of its result; None where a name has no document."""
        docs = space.docs[kind_of(which)]
        if isinstance(which, Named):
            return {name: docs.get(name) for name in which.names}
        found = [name for name in space.candidates(which) if self._selects(space, which, name, now)]
        if isinstance(which, Due):
            found = nsmallest(which.limit, found, key=lambda name: (docs[name].due_at or 0, name))
        elif isinstance(which, All) and which.limit is not None:
            found = nsmallest(which.limit, found)
        else:
            found.sort()
        return {name: docs[name] for name in found}

    def _selects(self, space: Space, which: Which, name: str, now: int) -> bool:
        """Return whether a document belongs to a selection that looks at all of its kind."""
        if isinstance(which, All):
            return name > which.after
        if isinstance(which, Due):
            kept = space.docs[Kind.JOB][name]
            return kept.due_at is not None and self._fits(which, kept) and self._ready_at(space, kept) <= now
        if isinstance(which, RecentSessions):
            doc = readable(Kind.SESSION, space.docs[Kind.SESSION][name].row)
            return doc is None or is_selected(which, doc, now)
        return True

    def _fits(self, which: Due, kept: Kept) -> bool:
        return kept.handler in which.handlers and kept.pool in which.pools and kept.row.name not in which.exclude

    def _ready_at(self, space: Space, kept: Kept) -> int:
        """Return when a job that is due some time can be selected: not before it is let in again, if it is aside."""
        aside = space.aside.get((Kind.JOB, kept.row.name))
        return max(kept.due_at or 0, aside.until if aside else 0)

    def _next_due(self, space: Space, which: Due) -> int | None:
        waiting = (one for one in space.docs[Kind.JOB].values() if one.due_at is not None and self._fits(which, one))
        return min((self._ready_at(space, one) for one in waiting), default=None)

    def holders(self) -> frozenset[str]:
        with self._locked("holders") as space:
            return frozenset(session for _, session in space.held)

    # --- writing

    def commit(self, drafts: Sequence[Draft], selection: Selection, session: str | None, gate: Gate | None) -> Written:
        outcome, firsts = Written(), dict[str, tuple[Record, ...]]()
        with self._locked("commit") as space:
            if session is not None and not self._is_live(space, session):
                return Written(alive=False)
            if not self._is_open(space, session, gate):
                return Written(shut=True)
            for draft in drafts:
                if self._is_current(space, draft):
                    firsts[draft.name] = self._write(space, draft)
                else:
                    outcome.lost.add(draft.name)
            if drafts[0].kind is Kind.SESSION and len(drafts) == 1:
                namespace = space.row(Kind.NAMESPACE, NAME)
                outcome.holds = bool(space.held.get((Kind.JOB, drafts[0].name)))
                outcome.gate = ("" if namespace is None else gate_in(namespace.state), self.world.identity)
        outcome.duplicates = firsts
        return outcome

    def _is_live(self, space: Space, session: str) -> bool:
        return is_live(space.row(Kind.SESSION, session))

    def _is_open(self, space: Space, session: str | None, gate: Gate | None) -> bool:
        own, namespace = space.row(Kind.SESSION, session), space.row(Kind.NAMESPACE, NAME)
        return admits(gate, own, namespace, self.world.identity)

    def _is_current(self, space: Space, draft: Draft) -> bool:
        """Return whether the document is still the very one that the change was computed from."""
        row = space.row(draft.kind, draft.name)
        return draft.mark == (None if row is None else row.mark)  # type: ignore[no-any-return]

    def _write(self, space: Space, draft: Draft) -> tuple[Record, ...]:
        """Write one document and append its records; return those that were there already and differ."""
        assert draft.change is not None
        new = draft.change.doc
        if new is not draft.doc:
            self.world.versions += 1
            kept = None if new is None else Kept.of(new, draft, self.world.versions)
            self._put(space, draft.kind, draft.name, kept)
            space.aside.pop((draft.kind, draft.name), None)
            if draft.wakes:
                self._notify()
        return self._append(space, draft.change.records)

    def _append(self, space: Space, records: tuple[Record, ...]) -> tuple[Record, ...]:
        firsts = [(space.log.setdefault((record.run, record.attempt), record), record) for record in records]
        return tuple(first for first, record in firsts if first != record)

    def _put(self, space: Space, kind: Kind, name: str, new: Kept | None) -> None:
        """Replace, create or delete a document, and the index of holders with it."""
        old = space.docs[kind].pop(name, None)
        for session in old.holders if old else ():
            names = space.held[kind, session]
            names.discard(name)
            if not names:
                del space.held[kind, session]
        if new is not None:
            space.docs[kind][name] = new
            for session in new.holders:
                space.held.setdefault((kind, session), set()).add(name)

    # --- the log, and what is set aside

    def records(self) -> Iterable[Record]:
        with self._locked("records") as space:
            return list(space.log.values())

    def remove(self, keys: Collection[LogKey]) -> None:
        with self._locked("remove") as space:
            for key in keys:
                space.log.pop(key, None)

    def asides(self) -> Iterable[Blocked]:
        with self._locked("asides") as space:
            return list(space.aside.values())

    def put_aside(self, aside: Blocked) -> None:
        with self._locked("put_aside") as space:
            if aside.name in space.docs[aside.kind]:
                space.aside[aside.kind, aside.name] = aside

    def let_in(self, kind: Kind, name: str) -> bool:
        with self._locked("let_in") as space:
            return space.aside.pop((kind, name), None) is not None

    # --- notifications, looking after

    def signal(self) -> None:
        with self._locked("signal"):
            self._notify(all_clients=True)

    def wait(self, timeout: float) -> bool:
        condition = self.world.condition
        with condition:
            seen = self._seen  # a copy: several threads of one client may wait
            notified = condition.wait_for(lambda: self.world.changes - self._own != seen, timeout)
            self._seen = self.world.changes - self._own
            return notified

    def checks(self) -> Sequence[Check]:
        found = f"{self.url} lives and dies with this process"
        return [Check("store", "WARN", found, "give a store that lasts: --store")]

    def shift_clock(self, by: int) -> None:
        with self._locked("shift_clock"):
            self.world.shift += by
            self._notify(all_clients=True)

    def _notify(self, *, all_clients: bool = False) -> None:
        """Wake the waiting clients; this one only with `all_clients`, because it knows its own changes."""
        self.world.changes += 1
        self._own += not all_clients
        self.world.condition.notify_all()

    @contextmanager
    def _locked(self, statement: str) -> Iterator[Space]:
        with self.world.condition:
            self.statements[statement] += 1
            yield self.world.spaces.setdefault(self.namespace, Space())
