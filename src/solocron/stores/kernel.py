"""The kernel of every store: `update` is written here once, and so is every read that a store has no index for.

A `PlainStore` supplies a few verbs, and overrides what it can do better:

    scan(kind, after, limit)    the rows of a kind, by name
    commit(drafts, ...)         all of them at once: those that are still as they were read, with their records, if the
                                session is live and the gate open
    records(), remove(keys)     the log
    clock()                     the store's time
    asides(), put_aside(...)    documents that are set aside
    wait(timeout), notify()     changes that other clients should look at

Its selections are versioned: nothing is locked while a change is computed, and `commit` compares the mark of each row.
A store that locks rows, or has an index for everything, inherits from `StoreKernel` and supplies `transaction`. Rounds,
verdicts, setting aside and retries are in `update.py` and nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from heapq import nsmallest
from typing import ClassVar, Protocol

from solocron.clock import SystemClock
from solocron.model.change import Change, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import Record
from solocron.model.documents.session import Life, Session
from solocron.stores.contract import (
    All,
    Applied,
    Blocked,
    ChangeFn,
    Doc,
    Due,
    Gate,
    HeldBy,
    HeldByAny,
    JobCounts,
    Mark,
    Named,
    Page,
    Query,
    RecentSessions,
    Which,
)
from solocron.stores.documents import counted, earliest, holders_of, is_open, kind_of, marks_of
from solocron.stores.drafts import Draft, Row, Selection, Written, decoded, fits, is_selected, is_swept_before, readable
from solocron.stores.log import (
    DENSITY_SPAN,
    density_within,
    divided,
    newest_by_job,
    page_within,
    parts_within,
)
from solocron.stores.paging import read_page
from solocron.stores.update import Update, aside_for

__all__ = ["LogKey", "PlainStore", "StoreKernel", "Transaction", "admits", "is_live"]

LogKey = tuple[str, int]
"""The unique key of a record: run and attempt."""


class Transaction(Protocol):
    """One round of an update: select once, then commit or abandon."""

    def select(self, which: Which, session: str | None) -> Selection:
        """Find the documents, locked, or with marks that show a change by others; read the store's time after that."""
        ...

    def commit(self, drafts: Sequence[Draft], selection: Selection, session: str | None, gate: Gate | None) -> Written:
        """Write them all at once, except those that other clients have changed in the meantime."""
        ...

    def abandon(self) -> None:
        """End it without writing."""
        ...


class StoreKernel(ABC):
    """The update loop, and what it asks of a store; for stores that find and lock documents in their own way."""

    statements: Counter[str]
    portion: ClassVar[int | None] = None
    """How many documents one commit takes at most; None: any number."""
    rounds: ClassVar[int] = 8
    """How often an update tries what it loses to other clients before it calls it contended."""
    own_errors: ClassVar[tuple[type[Exception], ...]] = (Exception,)
    """What a change may raise for a document that is broken; anything else is a bug."""
    boot: Callable[[], float] = staticmethod(SystemClock().boot)

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    def open(self, *, read_only: bool = False) -> None: ...

    @abstractmethod
    def clock(self) -> int:
        """Return the store's time in microseconds."""

    @abstractmethod
    def transaction(self, kind: Kind) -> AbstractContextManager[Transaction]:
        """Begin a round; a store that needs a connection for it takes one here."""

    @abstractmethod
    def times_aside(self, kind: Kind, name: str) -> int:
        """Return how often in a row a document was set aside."""

    @abstractmethod
    def put_aside(self, aside: Blocked) -> None:
        """Keep a document out of `Due` until an instant; nothing else of it changes, and one that is gone stays so."""

    @property
    def patience(self) -> float:
        """Seconds after which a conflict is not tried again."""
        return 3.0

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        self.open()
        return Update(self, which, change, session, gate).run()

    def document(self, kind: Kind, row: Row) -> Doc:
        """Return the document of a row; raise where it cannot be read."""
        return decoded(kind, row)

    def prepare(self, draft: Draft) -> None:  # noqa: B027 - most stores need nothing
        """Make of a draft what the commit needs; what this raises is the document's own error."""

    def names_of(self, which: Named | HeldBy | HeldByAny | RecentSessions) -> Sequence[str] | None:
        """Return the names of a selection that is committed in portions; None: it is not."""
        return None

    def recall(self, which: Named) -> Selection | None:
        """Return rows as this client wrote them last; what is missing is read. None: read them all."""
        return None

    def remember(self, drafts: Sequence[Draft], outcome: Written, session: str | None) -> None:  # noqa: B027 - as above
        """Keep what was just written for `recall`."""

    def fails_again(self, kind: Kind, name: str, reason: str) -> None:
        """Set a document aside that fails on its own, longer each time."""
        times = self.times_aside(kind, name) + 1
        self.put_aside(Blocked(kind, name, self.clock() + aside_for(times), reason[:1000], times))


class PlainStore(StoreKernel):
    """A store that supplies a few verbs; every read is answered over them, plainly."""

    @abstractmethod
    def identity(self) -> str: ...

    @abstractmethod
    def scan(self, kind: Kind, after: str = "", limit: int | None = None) -> Sequence[Row]:
        """Return the rows of a kind in the order of their names, after a name."""

    @abstractmethod
    def commit(self, drafts: Sequence[Draft], selection: Selection, session: str | None, gate: Gate | None) -> Written:
        """Write the drafts and append their records, in one atomic step; see `Transaction.commit`."""

    @abstractmethod
    def records(self) -> Iterable[Record]:
        """Return every record of the log, in any order."""

    @abstractmethod
    def remove(self, keys: Collection[LogKey]) -> None:
        """Remove records of the log."""

    @abstractmethod
    def asides(self) -> Iterable[Blocked]:
        """Return every document that is set aside, also those whose time is over."""

    @abstractmethod
    def let_in(self, kind: Kind, name: str) -> bool:
        """End the setting aside of a document; return whether it was."""

    @abstractmethod
    def signal(self) -> None: ...

    @abstractmethod
    def wait(self, timeout: float) -> bool: ...

    @contextmanager
    def transaction(self, kind: Kind) -> Iterator[Transaction]:
        yield _Versioned(self)

    def times_aside(self, kind: Kind, name: str) -> int:
        return next((one.times for one in self.asides() if (one.kind, one.name) == (kind, name)), 0)

    # --- plain reads

    def select(self, which: Which, session: str | None = None) -> Selection:
        """Find documents by looking at all of their kind."""
        kind = kind_of(which)
        if isinstance(which, Named):
            known = {row.name: row for row in self.scan(kind)}
            return Selection({name: known.get(name) for name in which.names}, self.clock(), self._lives(session))
        if isinstance(which, All):
            rows = self.scan(kind, which.after, which.limit)
            return Selection({row.name: row for row in rows}, self.clock(), self._lives(session))
        found, now = self.scan(kind), self.clock()
        docs = [(row, readable(kind, row, self.document)) for row in found]
        if isinstance(which, Due):
            return self._due(which, docs, now, session)
        rows = [row for row, doc in docs if doc is None or is_selected(which, doc, now)]
        return Selection({row.name: row for row in rows}, now, self._lives(session))

    def _due(self, which: Due, docs: Sequence[tuple[Row, Doc | None]], now: int, session: str | None) -> Selection:
        aside = {one.name: one.until for one in self.asides() if one.kind is Kind.JOB}
        ready: list[tuple[int, str, Row]] = []
        for row, doc in docs:
            if doc is None and row.name not in which.exclude:  # cannot be read: the draft says why it fails
                ready.append((aside.get(row.name, 0), row.name, row))
            if isinstance(doc, Job) and doc.due_at is not None and fits(which, doc):
                ready.append((max(doc.due_at, aside.get(doc.name, 0)), doc.name, row))
        now_due = nsmallest(max(which.limit, 0), [one for one in ready if one[0] <= now])
        rest = {name for _, name, _ in now_due}
        following = min((at for at, name, _ in ready if name not in rest), default=None)
        return Selection({name: row for _, name, row in now_due}, now, self._lives(session), following)

    def _lives(self, session: str | None) -> bool:
        if session is None:
            return True
        row = next((row for row in self.scan(Kind.SESSION) if row.name == session), None)
        return is_live(row)

    def read(self, which: Which) -> tuple[Doc, ...]:
        kind = kind_of(which)

        def rows(which: Which) -> list[tuple[str, Doc | None]]:
            found = self.select(which).rows.items()
            return [(name, None if row is None else readable(kind, row, self.document)) for name, row in found]

        return read_page(which, rows)

    def names(self, kind: Kind, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        return tuple(row.name for row in self.scan(kind, after, limit))

    def marked(self, mark: Mark, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        return tuple(job.name for job in self._jobs(after) if marks_of(job) & mark)[:limit]

    def count_jobs(self) -> JobCounts:
        return counted(len(self.scan(Kind.JOB)), ((marks_of(job), 1) for job in self._jobs()))

    def due_times(
        self, limit: int = 100, *, after: tuple[int, str] | None = None, until: int | None = None
    ) -> tuple[tuple[int, str], ...]:
        return earliest(((job.due_at, job.name) for job in self._jobs()), limit, after=after, until=until)

    def _jobs(self, after: str = "") -> list[Job]:
        """Return every job after a name that can be read, by name."""
        found = (readable(Kind.JOB, row, self.document) for row in self.scan(Kind.JOB, after))
        return [doc for doc in found if isinstance(doc, Job)]

    def holders(self) -> frozenset[str]:
        found: set[str] = set()
        for kind in Kind:
            for row in self.scan(kind):
                found |= holders_of(readable(kind, row, self.document))
        return frozenset(found)

    def history(self, query: Query) -> Page:
        return page_within(query, self.records())

    def newest(self, jobs: Sequence[str], limit: int) -> Mapping[str, tuple[Record, ...]]:
        return newest_by_job(self.history, jobs, limit)

    def tally_by_time(
        self, since: int, until: int, bucket: int, *, job: str | None = None
    ) -> Mapping[int, Mapping[str, int]]:
        return parts_within(divided(since, until, bucket, job=job), bucket, self.records())

    def density(self, since: int, until: int, bucket: int) -> Mapping[tuple[int, str | None], Mapping[str, int]]:
        return density_within(divided(since, until, bucket, longest=DENSITY_SPAN), bucket, self.records())

    def prune(self, before: int, limit: int) -> int:
        old = [(one.recorded_at, (one.run, one.attempt)) for one in self.records() if one.recorded_at < before]
        keys = [key for _, key in nsmallest(limit, old)]
        self.remove(keys)
        gone = tuple(doc.name for doc in self.read(All(Kind.SESSION)) if is_swept_before(doc, before))
        if gone:
            self.update(Named(Kind.SESSION, gone), lambda doc, now: Change(None))
        return len(keys)

    def blocked(self) -> Sequence[Blocked]:
        now = self.clock()
        return sorted((one for one in self.asides() if one.until > now), key=lambda one: (one.kind, one.name))

    def unblock(self, kind: Kind, name: str) -> bool:
        found = self.let_in(kind, name)
        if found:
            self.signal()
        return found


def is_live(row: Row | None) -> bool:
    """Return whether the row is of a session that is not buried; for the test that every claim's commit makes."""
    doc = None if row is None else readable(Kind.SESSION, row)
    return isinstance(doc, Session) and doc.state is Life.LIVE


def admits(gate: Gate | None, session: Row | None, namespace: Row | None, identity: str) -> bool:
    """Return whether a gate is open, from the stored rows of the session and of the namespace's document."""
    if gate is None or session is None:
        return True
    return is_open(gate, session.state, None if namespace is None else namespace.state, identity)


class _Versioned:
    """A round that holds nothing between its select and its commit."""

    def __init__(self, store: PlainStore) -> None:
        self._store = store

    def select(self, which: Which, session: str | None) -> Selection:
        return self._store.select(which, session)

    def commit(self, drafts: Sequence[Draft], selection: Selection, session: str | None, gate: Gate | None) -> Written:
        return self._store.commit(drafts, selection, session, gate)

    def abandon(self) -> None:
        """There is nothing to end."""
