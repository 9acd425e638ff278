"""Shared by the chapters of the suite: clients of one world, sample documents, short ways to call a store.

Nothing sleeps: time passes by shifting the clock.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from solocron.clock import SECOND
from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents.definition import Definition
from solocron.model.documents.job import Hold, Job
from solocron.model.documents.run import Origin, Record, Status
from solocron.model.documents.session import Life, Session, bury
from solocron.stores.contract import Applied, ChangeFn, Doc, Due, HeldBy, Named, Query, Store, Verdict

__all__ = [
    "HOUR",
    "LONG",
    "Clients",
    "Make",
    "add_hold",
    "bury_expired",
    "counts_of",
    "everything",
    "get",
    "hold",
    "job",
    "kind_of",
    "log",
    "names",
    "note",
    "patience",
    "put",
    "record",
    "session",
    "take",
    "verdicts",
    "write",
]

Make = Callable[..., Store]
"""Makes a new client of one world: `make()`, or `make(namespace="other")` for another namespace of it."""

HOUR = 3600 * SECOND
_LAST = 2**53
"""A time after that of every record, in microseconds; doubles are exact up to it."""
LONG = 30.0
"""Seconds within which even a busy machine gets there; only a wrong store takes that long."""


class Clients:
    """Clients of one fresh world, opened when made, closed at the end of the test."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._all: list[Store] = []
        self._advanced = False
        self._mutex = threading.Lock()

    def new(self, namespace: str = "default") -> Store:
        """Return a further client, opened."""
        store = self.unopened(namespace)
        store.open()
        return store

    def unopened(self, namespace: str = "default") -> Store:
        """Return a further client that is not opened yet."""
        assert not self._advanced, "make every client before time passes: where the shift is the client's own, it lags"
        store = self._make() if namespace == "default" else self._make(namespace=namespace)
        with self._mutex:
            self._all.append(store)
        return store

    def advance(self, by: int) -> None:
        """Let time pass for all clients, at least a second: a store may shift each client, or all of them at once."""
        assert by >= SECOND, "too short to tell the two kinds of store apart"
        self._advanced = True
        first = self._all[0]
        first.shift_clock(by)
        for store in self._all[1:]:
            while True:
                before, shifted, after = store.clock(), first.clock(), store.clock()
                if after - before < by // 4:
                    break  # else a clock of whole seconds has leapt meanwhile, and the three cannot be compared
            if shifted - after > by // 2:
                store.shift_clock(by)

    def close(self) -> None:
        """Close them all."""
        for store in self._all:
            store.close()


def patience() -> Iterator[None]:
    """Loop until the caller breaks; a store that never gets there fails instead of hanging."""
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        yield
    raise AssertionError(f"it did not happen within {LONG:g} s")


# --- documents


def job(name: str, *, due_at: int | None = None, handler: str = "h", pool: str = "default", **more: Any) -> Job:
    """Return a job without a schedule, due at `due_at`."""
    definition = more.pop("definition", None) or Definition(
        handler=handler, schedule=None, pool=pool, payload=more.pop("payload", None)
    )
    return Job(name=name, incarnation=1, definition=definition, cursor=0, due_at=due_at, **more)


def hold(run: str, by: str, *, fence: int = 1, attempt: int = 1) -> Hold:
    """Return a claim of a session."""
    return Hold(
        run=run,
        slot=1,
        origin=Origin.SCHEDULE,
        attempt=attempt,
        tries=0,
        session=by,
        node="node",
        fence=fence,
        claimed_at=1,
    )


def session(name: str, *, expires_at: int, state: Life = Life.LIVE, ended_at: int | None = None) -> Session:
    """Return a node's session in any state of its life."""
    return Session(
        name=name,
        node="node",
        host="host",
        pid=1,
        lease=15 * SECOND,
        expires_at=expires_at,
        state=state,
        ended_at=ended_at,
        reason=None if ended_at is None else "test",
    )


def note(kind: Kind, name: str, body: Mapping[str, Any] | None = None, *, by: str | None = None) -> SmallDocument:
    """Return a small document."""
    return SmallDocument(kind=kind, name=name, body={} if body is None else body, session=by)


def record(run: str, *, attempt: int = 1, status: Status = Status.SUCCEEDED, at: int = 1, **more: Any) -> Record:
    """Return a record of the log."""
    values: dict[str, Any] = {"job": run.partition("@")[0], "slot": 1, "origin": Origin.SCHEDULE, "key": f"{run}!"}
    values["finished_at"] = at
    return Record(run=run, attempt=attempt, status=status, recorded_at=at, **(values | more))


def bury_expired(doc: Session | Absent, *, now: int) -> Change | None:
    """Bury a session whose lease is over by the store's clock."""
    return bury(doc, now=now, reason="expired", seen=doc.beats) if isinstance(doc, Session) else None


def everything(limit: int = 1000, *, exclude: Collection[str] = ()) -> Due:
    """Select all due jobs that `job` makes."""
    return Due(handlers=frozenset({"h"}), pools=frozenset({"default"}), limit=limit, exclude=frozenset(exclude))


# --- asking a store


def put(store: Store, *docs: Doc, records: tuple[Record, ...] = ()) -> None:
    """Create or replace documents, whatever is there; the records go with the first."""
    for kind in dict.fromkeys(kind_of(doc) for doc in docs):
        new = {doc.name: doc for doc in docs if kind_of(doc) is kind}

        def change(old: Doc | Absent, now: int, new: Mapping[str, Doc] = new) -> Change:
            doc = new[old.name]
            return Change(doc, records if doc is docs[0] else ())

        pending = tuple(new)
        for _ in range(100):
            applied = store.update(Named(kind, pending), change)
            assert set(verdicts(applied).values()) <= {Verdict.APPLIED, Verdict.CONTENDED}, applied
            pending = tuple(result.name for result in applied.results if result.verdict is Verdict.CONTENDED)
            if not pending:
                break
        assert not pending


def kind_of(doc: Doc) -> Kind:
    """Return the kind of a document."""
    if isinstance(doc, SmallDocument):
        return doc.kind
    return Kind.JOB if isinstance(doc, Job) else Kind.SESSION


def get(store: Store, kind: Kind, name: str) -> Any:
    """Return the document of a name, or None."""
    found = store.read(Named(kind, (name,)))
    return found[0] if found else None


def write(store: Store, kind: Kind, name: str, change: ChangeFn, **more: Any) -> Applied:
    """Apply a change to one name."""
    return store.update(Named(kind, (name,)), change, **more)


def verdicts(applied: Applied) -> dict[str, Verdict]:
    """Return the verdicts by name."""
    return {result.name: result.verdict for result in applied.results}


def names(docs: Sequence[Doc]) -> list[str]:
    """Return the names of documents in their order."""
    return [doc.name for doc in docs]


def log(store: Store, **query: Any) -> tuple[Record, ...]:
    """Return records of the log, up to a thousand."""
    wanted: dict[str, Any] = {"limit": 1000} | query
    return store.history(Query(**wanted)).records


def counts_of(store: Store, since: int = 0, until: int = _LAST, *, job: str | None = None) -> dict[str, int]:
    """Return how many records of each status lie in a span, of one job or of all."""
    found = Counter[str]()
    for counts in store.tally_by_time(since, until, max(until - since, 1), job=job).values():
        found.update({str(status): count for status, count in counts.items() if count})
    return dict(found)


def add_hold(by: str) -> ChangeFn:
    """Return a claim in its simplest form: take a job without a hold, and make it not due any more."""

    def change(doc: Job | Absent, now: int) -> Change | None:
        if isinstance(doc, Absent) or doc.active:
            return None
        claimed = hold(f"{doc.name}@1", by, fence=doc.fence + 1)
        new = job(
            doc.name, definition=doc.definition, fence=claimed.fence, active=(claimed,), due_at=None, extra=doc.extra
        )
        return Change(new, answer=by)

    return change


def take(store: Store, by: str, which: Due | Named | HeldBy | None = None, **more: Any) -> list[str]:
    """Claim what is due; return the names of the claimed jobs."""
    applied = store.update(which or everything(), add_hold(by), **more)
    return [result.name for result in applied.results if result.verdict is Verdict.APPLIED]
