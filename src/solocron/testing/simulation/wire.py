"""A node's client of the simulated store: the store contract over a network that delays, loses, repeats and reorders.

The update loop is the kernel's; a round of it is three legs: select, change, commit. Silence is unknown, never no. A
request that was sent may be applied at any later time, whatever its sender believes by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from solocron.errors import InvalidError, StoreUnavailable
from solocron.model.change import Absent, Kind
from solocron.model.documents.job import Job
from solocron.model.documents.run import Record
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
    JobCounts,
    Mark,
    Named,
    Page,
    Query,
    RecentSessions,
    Tier,
    Which,
)
from solocron.stores.documents import counted, earliest, marks_of
from solocron.stores.drafts import Draft, Row, Selection, Written
from solocron.stores.kernel import StoreKernel
from solocron.stores.log import (
    DENSITY_SPAN,
    density_within,
    divided,
    newest_by_job,
    page_within,
    parts_within,
)
from solocron.stores.update import Retry, UnknownOutcome
from solocron.testing.simulation.client import WireClient
from solocron.testing.simulation.database import Database, SimSelection
from solocron.testing.simulation.kernel import Process
from solocron.testing.simulation.network import Network

__all__ = ["WireStore"]


class WireStore(WireClient, StoreKernel):
    """The store as one process of the simulated world sees it."""

    rounds = 2  # few, so that the nodes often meet what is contended
    own_errors = (InvalidError,)  # anything else that a change raises is a bug and ends the world

    def __init__(self, database: Database, process: Process, network: Network, *, timeout: float, rate: float) -> None:
        WireClient.__init__(self, database, process, network, timeout=timeout, rate=rate)
        self.statements = Counter()
        self.boot = lambda: process.kernel.now * rate
        self.namespace = "default"
        self.capabilities = Capabilities(tier=Tier.A, why="simulated", notifies=True)

    @property
    def url(self) -> str:
        return "simulated://"

    # --- the contract --------------------------------------------------------------------------------------------

    def open(self, *, read_only: bool = False) -> None:
        """Do nothing: it is always open."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def clock(self) -> int:
        now: int = self._call(lambda reply: reply(self._database.clock()), "clock")
        return now

    def read(self, which: Which) -> tuple[Doc, ...]:
        age = self._network.staleness()
        return tuple(self._call(lambda reply: reply(self._database.read(which, age=age)), "read"))

    def holders(self) -> frozenset[str]:
        found: frozenset[str] = self._call(lambda reply: reply(self._database.holders()), "holders")
        return found

    def identity(self) -> str:
        told: str = self._call(lambda reply: reply(self._database.identity), "identity")
        return told

    @contextmanager
    def transaction(self, kind: Kind) -> Iterator[_Legs]:
        yield _Legs(self)

    def select(self, which: Which) -> SimSelection:
        """Make the first leg of an update."""
        database, name = self._database, self._process.name
        chosen: SimSelection = self._call(
            lambda reply: database.select(name, which, reply, lock=True), f"select {_label(which)}"
        )
        return chosen

    def commit(
        self, chosen: SimSelection, drafts: Sequence[Draft], session: str | None, gate: Gate | None, label: str
    ) -> Written:
        """Make the last leg of an update."""
        if self._network.serialization_fails():
            self.rollback(chosen)
            raise Retry("the transactions of others came first")
        once: list[Written] = []

        def serve(reply: Callable[[Written], None]) -> None:
            # A repeated request is recognised and gets the first reply.
            if not once:
                once.append(self._database.commit(chosen, drafts, session, gate))
            reply(once[0])

        try:
            outcome: Written = self._call(serve, f"commit {label}")
        except StoreUnavailable as error:
            raise UnknownOutcome(str(error)) from error
        return outcome

    def rollback(self, chosen: SimSelection) -> None:
        if chosen.locked:
            self._send(lambda: self._database.rollback(chosen))

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        sent = self._process.kernel.now
        applied = super().update(which, change, session=session, gate=gate)
        if isinstance(which, Named) and which.kind is Kind.SESSION:
            self._confirm(applied.results, sent)
        return applied

    def document(self, kind: Kind, row: Row) -> Doc:
        """Return the document that the row carries: the simulated store keeps no texts."""
        doc: Doc = row.mark[0]
        return doc

    def times_aside(self, kind: Kind, name: str) -> int:
        known: Blocked | None = self._call(lambda reply: reply(self._database.aside.get((kind, name))), "times aside")
        return 0 if known is None else known.times

    def put_aside(self, aside: Blocked) -> None:
        def serve(reply: Callable[[None], None]) -> None:
            self._database.put_aside(aside)
            reply(None)

        self._call(serve, "put aside")

    def names(self, kind: Kind, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        return tuple(doc.name for doc in self.read(All(kind, after, limit)))

    def marked(self, mark: Mark, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        return tuple(doc.name for doc in self.read(All(Kind.JOB, after)) if marks_of(doc) & mark)[:limit]

    def count_jobs(self) -> JobCounts:
        jobs = self.read(All(Kind.JOB))
        return counted(len(jobs), ((marks_of(job), 1) for job in jobs))

    def due_times(
        self, limit: int = 100, *, after: tuple[int, str] | None = None, until: int | None = None
    ) -> tuple[tuple[int, str], ...]:
        jobs = [doc for doc in self.read(All(Kind.JOB)) if isinstance(doc, Job)]
        return earliest(((job.due_at, job.name) for job in jobs), limit, after=after, until=until)

    def history(self, query: Query) -> Page:
        page: Page = self._call(lambda reply: reply(page_within(query, self._database.log.values())), "history")
        return page

    def newest(self, jobs: Sequence[str], limit: int) -> Mapping[str, tuple[Record, ...]]:
        return newest_by_job(self.history, jobs, limit)

    def tally_by_time(
        self, since: int, until: int, bucket: int, *, job: str | None = None
    ) -> Mapping[int, Mapping[str, int]]:
        return parts_within(divided(since, until, bucket, job=job), bucket, self._database.log.values())

    def density(self, since: int, until: int, bucket: int) -> Mapping[tuple[int, str | None], Mapping[str, int]]:
        span = divided(since, until, bucket, longest=DENSITY_SPAN)
        return density_within(span, bucket, self._database.log.values())

    def prune(self, before: int, limit: int) -> int:
        removed: int = self._call(lambda reply: reply(self._database.prune(before, limit)), "prune")
        return removed

    def blocked(self) -> Sequence[Blocked]:
        now = self._database.clock()
        return [aside for aside in self._database.aside.values() if aside.until > now]

    def unblock(self, kind: Kind, name: str) -> bool:
        return self._database.aside.pop((kind, name), None) is not None

    def checks(self) -> Sequence[Check]:
        return ()

    def shift_clock(self, by: int) -> None:
        self._database.step += by / 1_000_000


class _Legs:
    """One round of an update: the leg that selects, and the leg that commits."""

    def __init__(self, store: WireStore) -> None:
        self._store = store
        self._chosen: SimSelection | None = None
        self._label = ""

    def select(self, which: Which, session: str | None) -> Selection:
        chosen = self._chosen = self._store.select(which)
        self._label = _label(which)
        rows = {
            doc.name: None if isinstance(doc, Absent) else Row(doc.name, (doc, version), "", "")
            for doc, version in chosen.docs
        }
        return Selection(rows, chosen.now, next_due=chosen.next_due)

    def commit(self, drafts: Sequence[Draft], selection: Selection, session: str | None, gate: Gate | None) -> Written:
        assert self._chosen is not None
        return self._store.commit(self._chosen, drafts, session, gate, self._label)

    def abandon(self) -> None:
        if self._chosen is not None:
            self._store.rollback(self._chosen)


def _label(which: Which) -> str:
    """Return what an update is about, as statements are counted and scripted: claim, job, session, held, ..."""
    match which:
        case Due():
            return "claim"
        case HeldBy() | HeldByAny():
            return "held"
        case RecentSessions():
            return str(Kind.SESSION)
        case Named(kind=kind) | All(kind=kind):
            return str(kind)
