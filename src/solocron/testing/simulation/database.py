"""The simulated store's own side: documents, locks, versions, the log, and the observers of each commit.

Two profiles. *locking* is a SQL server: what a transaction selects stays locked until it commits, is rolled back, or
idles too long; *swapping* compares versions at commit. Both test the claim's session in the very commit. Weaker stores,
which reply from a stale replica or forget their last commits in a crash, keep a `past` to go back to.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Sequence

from solocron.clock import SECOND
from solocron.model.change import Absent, Kind, SmallDocument
from solocron.model.documents.job import Job
from solocron.model.documents.namespace import NAME, gate_of
from solocron.model.documents.run import Record
from solocron.model.documents.session import Life, Session
from solocron.stores.contract import Blocked, Doc, Due, Gate, HeldBy, HeldByAny, Named, RecentSessions, Which
from solocron.stores.drafts import Draft, Written, is_selected, is_swept_before, kind_and_name
from solocron.testing.simulation.commits import Commit, Key, LogKey, Past, SimSelection, Undo
from solocron.testing.simulation.kernel import Kernel

__all__ = ["Commit", "Database", "Key", "Past", "SimSelection"]


class Database:
    """The one store of a simulated world."""

    def __init__(self, kernel: Kernel, *, locking: bool, idle_timeout: float, past: Past | None = None) -> None:
        self.kernel = kernel
        self.locking = locking
        self._idle_timeout = idle_timeout
        self.past = past
        self.docs: dict[Key, tuple[Doc, int]] = {}
        self.log: dict[LogKey, Record] = {}
        self.commits: deque[Commit] = deque(maxlen=200)
        """The last commits."""
        self.up = True
        self.identity = "server-1"
        """Server that replies."""
        self.step = 0.0
        """Seconds by which its clock has been stepped."""
        self.on_commit: list[Callable[[Commit], None]] = []
        self.on_wake: dict[str, Callable[[], None]] = {}
        self.on_prune: list[Callable[[Record, int], None]] = []
        self.twice: list[tuple[Record, Record]] = []
        """Records that the log had already when others of the same run and attempt came: the first, and the second."""
        self.aside: dict[Key, Blocked] = {}
        self.jobs: dict[str, Job] = {}
        self._names: dict[Kind, list[str]] = {kind: [] for kind in Kind}
        self._held: dict[str, dict[str, None]] = {}
        self._locks: dict[Key, int] = {}
        self._open: dict[int, SimSelection] = {}
        self._waiting: list[Callable[[], None]] = []
        self._version = 0
        self._number = 0
        self._servers = 1
        self._since = 0
        """Last selection of a connection that is broken."""

    def clock(self) -> int:
        return round((self.kernel.epoch + self.kernel.now + self.step) * SECOND)

    # --- transactions --------------------------------------------------------------------------------------------

    def select(
        self, client: str, which: Which, done: Callable[[SimSelection], None], *, lock: bool, until: float | None = None
    ) -> None:
        """Select for a change. Waits for others' locks, for a while, unless the selection may skip locked documents."""
        lock = lock and self.locking
        next_due = None
        if isinstance(which, Due):
            keys, next_due = self._due(which, lock=lock)
        else:
            keys = self._keys(which)
            if lock and any(key in self._locks for key in keys):
                # As long as an idle transaction may keep its locks; a client that waits longer gets no reply.
                limit = self.kernel.now + self._idle_timeout if until is None else until
                if self.kernel.now <= limit:
                    self._waiting.append(lambda: self.select(client, which, done, lock=lock, until=limit))
                return
        self._number += 1
        chosen = SimSelection(
            self._number, client, [self._read(key) for key in keys], self.clock(), self.kernel.now, next_due
        )
        if lock and keys:
            chosen.locked = frozenset(keys)
            for key in keys:
                self._locks[key] = chosen.number
            self._open[chosen.number] = chosen
            self.kernel.after(self._idle_timeout, self._abort, chosen)
        done(chosen)

    def rollback(self, chosen: SimSelection) -> None:
        self._release(chosen)

    def commit(self, chosen: SimSelection, drafts: Sequence[Draft], session: str | None, gate: Gate | None) -> Written:
        """Apply what still may be applied, if the session is live and the gate open at this very moment."""
        if chosen.aborted or chosen.number <= self._since:
            return Written(lost={draft.name for draft in drafts})
        try:
            if session is not None and not self._is_live(session):
                return Written(alive=False)
            if gate is not None and session is not None and not self._is_open(session, gate):
                return Written(shut=True)
            firsts: dict[str, tuple[Record, ...]] = {}
            lost = {draft.name for draft in drafts if not self._apply(chosen, draft, firsts)}
            outcome = Written(lost=lost, duplicates=firsts)
            if len(drafts) == 1 and drafts[0].kind is Kind.SESSION:
                outcome.holds = drafts[0].name in self._held
                outcome.gate = (self._gate(), self.identity)
            return outcome
        finally:
            self._release(chosen)

    def _gate(self) -> str:
        held = self.docs.get((Kind.NAMESPACE, NAME))
        return (gate_of(held[0]) or "") if held is not None and isinstance(held[0], SmallDocument) else ""

    def _is_open(self, session: str, gate: Gate) -> bool:
        own = self.docs[(Kind.SESSION, session)][0]
        assert isinstance(own, Session)
        return own.beats >= gate.beats and f"{self._gate()} ".startswith(gate.openings(self.identity))

    def _is_live(self, session: str) -> bool:
        held = self.docs.get((Kind.SESSION, session))
        return held is not None and isinstance(held[0], Session) and held[0].state is Life.LIVE

    def restart(self, forgets: int = 0) -> int:
        """Forget what was not committed, and the last commits of a store that does not sync.

        Return how many commits.
        """
        self._break_off()
        gone = 0
        while self.past is not None and self.past.undo and gone < forgets:
            self._forget(self.past.undo.pop())
            gone += 1
        return gone

    def go_back(self, seconds: float, *, failover: bool) -> int:
        """Go back in time by so much; return how many commits are gone. After a failover another server replies."""
        assert self.past is not None
        self._break_off()
        since, gone = self.kernel.now - seconds, 0
        while self.past.undo and self.past.undo[-1].at >= since:
            self._forget(self.past.undo.pop())
            gone += 1
        if failover:
            self._servers += 1
            self.identity = f"server-{self._servers}"
        return gone

    def _break_off(self) -> None:
        """Break every connection: what was selected through it can no longer be committed."""
        for chosen in list(self._open.values()):
            self._abort(chosen)
        self._since = self._number

    def _forget(self, undo: Undo) -> None:
        self._version += 1
        self._put(undo.key, None if undo.doc is None else undo.doc[0], self._version)
        for key in undo.appended:
            self.log.pop(key, None)

    def put_aside(self, aside: Blocked) -> None:
        if (aside.kind, aside.name) in self.docs:
            self.aside[aside.kind, aside.name] = aside

    def _apply(self, chosen: SimSelection, draft: Draft, firsts: dict[str, tuple[Record, ...]]) -> bool:
        assert draft.change is not None
        assert draft.doc is not None
        key, before, after = (draft.kind, draft.name), draft.doc, draft.change.doc
        known = self.docs.get(key)
        if (known[1] if known else 0) != (draft.mark[1] if draft.mark else 0):
            return False
        commit = Commit(
            self.kernel.now, self.clock(), chosen.client, draft.kind, draft.name, before, after, draft.change.records,
            chosen.now, chosen.at,
        )  # fmt: skip
        appended = self._append(draft.name, draft.change.records, firsts)
        if after is not before:
            self._version += 1
            self._put(key, after, self._version)
            if self.aside:
                self.aside.pop(key, None)
        if self.past is not None:
            self._remember(self.past, Undo(self.kernel.now, key, known, appended))
        self.commits.append(commit)
        for observer in self.on_commit:
            observer(commit)
        if draft.wakes:
            self.wake()
        return True

    def wake(self) -> None:
        for wake in list(self.on_wake.values()):
            wake()

    def _append(
        self, name: str, records: Sequence[Record], firsts: dict[str, tuple[Record, ...]]
    ) -> tuple[LogKey, ...]:
        """Append the records of a document's change; return the keys of those that are new."""
        new: list[LogKey] = []
        for record in records:
            first = self.log.setdefault((record.run, record.attempt), record)
            if first is record:
                new.append((record.run, record.attempt))
            elif first != record:
                firsts[name] = (*firsts.get(name, ()), first)
                self.twice.append((first, record))
        return tuple(new)

    def _put(self, key: Key, doc: Doc | None, version: int) -> None:
        """Keep a document, and everything by which it is found."""
        kind, name = key
        before = self.docs.get(key)
        if isinstance(doc, Job) or (before is not None and isinstance(before[0], Job)):
            self._index(name, before[0] if before else None, doc)
        names = self._names[kind]
        if doc is None:
            if self.docs.pop(key, None) is not None:
                del names[bisect_left(names, name)]
            return
        if before is None:
            insort(names, name)
        self.docs[key] = (doc, version)

    def _index(self, name: str, before: Doc | None, after: Doc | None) -> None:
        old = before.active if isinstance(before, Job) else ()
        new = after.active if isinstance(after, Job) else ()
        if old is not new:
            for hold in old:
                held = self._held.get(hold.session)
                if held is not None:
                    held.pop(name, None)
                    if not held:
                        del self._held[hold.session]
            for hold in new:
                self._held.setdefault(hold.session, {})[name] = None
        if isinstance(after, Job):
            self.jobs[name] = after
        else:
            self.jobs.pop(name, None)

    def _remember(self, past: Past, undo: Undo) -> None:
        past.undo.append(undo)
        while past.undo and past.undo[0].at < self.kernel.now - past.seconds:
            past.undo.popleft()

    def _abort(self, chosen: SimSelection) -> None:
        if chosen.number in self._open:
            chosen.aborted = True
            self._release(chosen)

    def _release(self, chosen: SimSelection) -> None:
        if self._open.pop(chosen.number, None) is None:
            return
        for key in chosen.locked:
            if self._locks.get(key) == chosen.number:
                del self._locks[key]
        waiting, self._waiting = self._waiting, []
        for again in waiting:
            self.kernel.after(0.0, again)

    def put(self, doc: Doc) -> None:
        """Write a document directly, bypassing every client."""
        self._version += 1
        self._put(kind_and_name(doc), doc, self._version)

    # --- selecting -----------------------------------------------------------------------------------------------

    def read(self, which: Which, *, age: float = 0.0) -> list[Doc]:
        """Return documents as they are; with `age`, as a replica has them that is so many seconds behind."""
        old = self._as_of(self.kernel.now - age) if age else {}
        found = []
        for key in self._keys(which):
            held = old[key] if key in old else self.docs.get(key)
            if held is not None:
                found.append(held[0])
        return found

    def _as_of(self, moment: float) -> dict[Key, tuple[Doc, int] | None]:
        old: dict[Key, tuple[Doc, int] | None] = {}
        for undo in reversed(self.past.undo if self.past else ()):
            if undo.at <= moment:
                break
            old[undo.key] = undo.doc
        return old

    def holders(self) -> frozenset[str]:
        return frozenset(self._held)

    def held(self, session: str) -> list[str]:
        """Return the jobs that name a session as a holder."""
        return list(self._held.get(session, ()))

    def prune(self, before: int, limit: int) -> int:
        """Remove old records, oldest first, and swept sessions; return how many."""
        gone: list[LogKey] = []
        for key, record in self.log.items():
            if record.recorded_at >= before or len(gone) >= limit:
                break  # they were appended in about this order
            gone.append(key)
        for key in gone:
            record = self.log.pop(key)
            for observer in self.on_prune:
                observer(record, before)
        for name in list(self._names[Kind.SESSION]):
            doc = self.docs[(Kind.SESSION, name)][0]
            if is_swept_before(doc, before):
                self._put((Kind.SESSION, name), None, 0)
        return len(gone)

    def _due(self, which: Due, *, lock: bool) -> tuple[list[Key], int | None]:
        """Return what is due and available now, and when the rest is."""
        now, chosen, moments = self.clock(), [], []
        for job in self._due_jobs(which):
            ready = self._ready_at(job)
            if ready <= now and not (lock and (Kind.JOB, job.name) in self._locks):
                chosen.append((job.due_at or 0, job.name, ready))
            else:
                moments.append(ready)
        chosen.sort()
        moments += [ready for _, _, ready in chosen[which.limit :]]
        return [(Kind.JOB, name) for _, name, _ in chosen[: which.limit]], min(moments, default=None)

    def _read(self, key: Key) -> tuple[Doc | Absent, int]:
        return self.docs.get(key) or (Absent(*key), 0)

    def _keys(self, which: Which) -> list[Key]:
        if isinstance(which, Named):
            return [(which.kind, name) for name in which.names]
        if isinstance(which, Due):
            return self._due(which, lock=False)[0]
        if isinstance(which, HeldBy):
            if which.kind is Kind.JOB:
                return [(Kind.JOB, name) for name in sorted(self._held.get(which.session, ()))]
            return [
                (which.kind, name)
                for name in self._names[which.kind]
                if self._small_document_of(which.kind, name, which.session)
            ]
        if isinstance(which, HeldByAny):
            names = {name for held in self._held.values() for name in held}
            return [(Kind.JOB, name) for name in sorted(names)] if which.kind is Kind.JOB else []
        if isinstance(which, RecentSessions):
            found = [(Kind.SESSION, name) for name in self._names[Kind.SESSION]]
            return [key for key in found if is_selected(which, self.docs[key][0], 0)]
        all_names = self._names[which.kind]
        first = bisect_right(all_names, which.after) if which.after else 0
        last = len(all_names) if which.limit is None else first + which.limit
        return [(which.kind, name) for name in all_names[first:last]]

    def _small_document_of(self, kind: Kind, name: str, session: str) -> bool:
        doc = self.docs[(kind, name)][0]
        return isinstance(doc, SmallDocument) and doc.session == session

    def _due_jobs(self, which: Due) -> list[Job]:
        return [
            job
            for job in self.jobs.values()
            if job.due_at is not None
            and job.definition.handler in which.handlers
            and job.definition.pool in which.pools
            and job.name not in which.exclude
        ]

    def _ready_at(self, job: Job) -> int:
        due = job.due_at or 0
        if self.aside:
            aside = self.aside.get((Kind.JOB, job.name))
            return max(due, aside.until) if aside else due
        return due
