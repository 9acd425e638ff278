"""What every store promises, and all that the engine may ask of one.

A store never decides anything. It finds documents, calls a pure function for what they become, replaces each one only
if no other client has changed it since, appends records to the log in the same atomic step, and tells the time. What
runs is in the job's document, what has ended is in the log: a record never changes once it is appended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag, StrEnum
from typing import Any, Protocol

from solocron.model.change import Absent, Change, Kind, SmallDocument
from solocron.model.documents.job import Job
from solocron.model.documents.run import Record
from solocron.model.documents.session import Session

__all__ = [
    "All",
    "Applied",
    "Blocked",
    "Capabilities",
    "ChangeFn",
    "Check",
    "Doc",
    "Due",
    "Gate",
    "HeldBy",
    "HeldByAny",
    "JobCounts",
    "Mark",
    "Named",
    "Page",
    "Query",
    "RecentSessions",
    "RecordKey",
    "Result",
    "Store",
    "Tier",
    "Verdict",
    "Which",
    "wakes",
]

Doc = Job | Session | SmallDocument

ChangeFn = Callable[[Any, int], Change | None]
"""`change(document or Absent, store time)`: the change, or None for "not mine to make".

It is pure: a store may call it again with a newer document after a lost race; only the last answer counts. The time
is the store's, read when the document could no longer change unseen: a *lower bound* of the commit's time, good for
"already past", never for "not yet past".
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Jobs whose `due_at` has come, of these handlers and pools, oldest first, at most `limit`.

    The only selection that may pass over what another client is just changing. Blocked documents and those in
    `exclude` are left out.
    """

    handlers: frozenset[str]
    pools: frozenset[str]
    limit: int
    exclude: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Named:
    """The documents of these names; a name without a document is handed to the change as `Absent`."""

    kind: Kind
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeldBy:
    """Documents that name this session as a holder; waits for what another client is just changing."""

    session: str
    kind: Kind = Kind.JOB


@dataclass(frozen=True, slots=True)
class HeldByAny:
    """Every document of a kind that any session holds, at the cost of what is held and not of what exists."""

    kind: Kind = Kind.JOB


@dataclass(frozen=True, slots=True)
class All:
    """Every document of a kind in the order of their names, in pages: at most `limit`, after the name `after`."""

    kind: Kind
    after: str = ""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class RecentSessions:
    """The sessions that are live or dead, and those that were swept and ended at `since` or later; by name.

    At the cost of what it finds: a fleet that restarts often keeps thousands of swept sessions.
    """

    since: int | None = None
    """None: no swept ones."""

    @property
    def kind(self) -> Kind:
        """The kind of its documents."""
        return Kind.SESSION


class Mark(IntFlag):
    """What an index knows of a job, beside when it is due and which sessions hold it. It seldom changes."""

    PAUSED = 1
    """It has a pause of its own."""
    FAILING = 2
    """Its last run failed."""
    DISABLED = 4
    REMOVED = 8
    """It is removed, and its document is kept for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCounts:
    """Numbers of jobs: all documents, and those that bear each mark."""

    all: int
    marked: Mapping[Mark, int]


Which = Due | Named | HeldBy | HeldByAny | All | RecentSessions


@dataclass(frozen=True, slots=True)
class Gate:
    """What must hold in the commit of a claim, beside the life of its session: the store has not gone back.

    The session's document counts at least `beats` renewals. What the namespace's document bears are words with a space
    between two of them; it begins with one of `words`, the identity that the server tells in that very commit, and,
    unless that is empty, `pauses`.
    """

    beats: int
    words: tuple[str, ...]
    pauses: str = ""
    """Mark of the pauses that the claim has considered; empty: the write does not depend on them."""

    def openings(self, identity: str) -> tuple[str, ...]:
        """Return the beginnings of which the document bears one, each with the space that ends its last word."""
        end = f"{self.pauses} " if self.pauses else ""
        return tuple(f"{word} {identity} {end}" for word in self.words)


class Verdict(StrEnum):
    """What became of one document in an `update`."""

    APPLIED = "applied"
    """The change is in the store."""
    DECLINED = "declined"
    """The function said no; nothing was written."""
    CONTENDED = "contended"
    """Others kept changing it first; nothing was written, worth repeating."""
    UNKNOWN = "unknown"
    """The connection broke while committing: it may or may not be in the store. Treat it as not held."""
    BLOCKED = "blocked"
    """The document fails on its own (bad JSON, the function raised): set aside for a while."""


@dataclass(frozen=True, slots=True)
class Result:
    """One document's verdict; `doc` is the new document where applied, the unchanged one where declined."""

    name: str
    verdict: Verdict
    doc: Doc | Absent | None = None
    answer: Any = None
    error: str | None = None
    duplicates: tuple[Record, ...] = ()
    """Records that the log had already under the run and attempt of others that were to be appended. They stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What an `update` did.

    `now` is what the store's clock told during this very call, so that it can be set against ours; 0 if it told
    nothing, as when its answer was lost. `alive` is False when the session that the update was tied to
    is not live any more: then nothing was applied. `next_due` (for `Due`) is the earliest `due_at` of the selection
    that was not returned: in the past when `limit` cut it short, None when nothing is due ever. `holds` (of a session
    that was written alone) tells whether any job names it as a holder, as seen by that very write; None where the
    store did not look. `shut` is True when the gate that the update named does not stand open: then nothing was
    applied. `gate` (of a session that was written alone) is what the namespace's document bears and the identity that
    the server tells, as seen by that very write; None where the store did not look.
    """

    results: tuple[Result, ...]
    now: int
    alive: bool = True
    next_due: int | None = None
    holds: bool | None = None
    shut: bool = False
    gate: tuple[str, str] | None = None


RecordKey = tuple[int, str, int]
"""The place of a record in the log: recorded_at, run, attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which records of the log, newest first (by `recorded_at`, then run and attempt)."""

    job: str | None = None
    run: str | None = None
    runs: tuple[str, ...] = ()
    """Several runs by name, at most 200; together with `run`, one more."""
    group: str | None = None
    """The shards of this run: those whose names are its name, `#` and a number."""
    statuses: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    node: str | None = None
    session: str | None = None
    since: int | None = None
    until: int | None = None
    before: RecordKey | None = None
    """Only records after this one in the order of the answer, that is, older ones: `Page.next` of the page before."""
    limit: int = 50
    scan: int = 20_000
    """How many records the store looks at: a filter without an index costs no more than that."""

    @property
    def named(self) -> tuple[str, ...]:
        """The runs that are asked for by name."""
        return self.runs if self.run is None else (*self.runs, self.run)

    @property
    def most(self) -> int:
        """How many records are looked at; never fewer than were asked for."""
        return max(self.scan, self.limit)

    @property
    def filters(self) -> bool:
        """Whether it asks for anything that no index answers."""
        return bool(self.origins) or self.node is not None or self.session is not None

    def finds(self, record: Record) -> bool:
        """Whether this record is among those asked for, wherever the page begins."""
        return (
            self.job in (None, record.job)
            and (record.run in named if (named := self.named) else True)
            and (self.group is None or record.run.startswith(f"{self.group}#"))
            and (not self.statuses or record.status in self.statuses)
            and (not self.origins or record.origin in self.origins)
            and self.node in (None, record.node)
            and self.session in (None, record.session)
            and (self.since is None or record.recorded_at >= self.since)
            and (self.until is None or record.recorded_at < self.until)
        )


@dataclass(frozen=True, slots=True)
class Page:
    """Records of the log, newest first."""

    records: tuple[Record, ...]
    next: RecordKey | None = None
    """Where the next page begins (`Query.before`); None when there is nothing more."""
    looked_back_to: int | None = None
    """When `scan` ended the search before `limit` records were found: how far back it came."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """A document that was set aside because it fails on its own."""

    kind: Kind
    name: str
    until: int
    reason: str
    times: int


class Tier(StrEnum):
    """What a store, as it is set up, can be trusted with."""

    A = "A"
    """Correct, whatever pauses, clocks and networks do."""
    B = "B"
    """Correct under the settings that `why` names."""
    C = "C"
    """Saves work, promises nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What this store can do as it is set up."""

    tier: Tier
    why: str
    notifies: bool = False
    """Whether `wait` returns early when another process changed something."""
    shared: bool = True
    """Whether other processes can open it too."""
    clock_within: int = 0
    """Microseconds by which `clock()` may be behind the server's clock at the moment; it is never ahead of it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `doctor`: what was looked at, how it is, and what to do about it."""

    name: str
    level: str  # "OK", "WARN" or "FAIL"
    detail: str
    remedy: str | None = None


def wakes(before: Doc | Absent, after: Doc | None) -> bool:
    """Whether other nodes should look again because of this change; ordinary claims and renewals wake none.

    They should when a job became due earlier than they know, when a holder was asked to stop, when a session
    came or went, and when the namespace opened or shut.
    """
    if isinstance(after, Job):
        if isinstance(before, Job):
            for hold in after.active:
                if hold.cancel and hold not in before.active:
                    return True
            if before.due_at is not None and (after.due_at is None or after.due_at >= before.due_at):
                return before.definition is not after.definition and before.definition != after.definition
        return after.due_at is not None
    if isinstance(after, Session):
        return not isinstance(before, Session) or before.state is not after.state
    if isinstance(after, SmallDocument) and after.kind is Kind.NAMESPACE:
        return True
    return after is None and isinstance(before, Job)


class Store(Protocol):
    """A namespace of documents and their log. Safe to call from any thread; every call uses a connection of its own.

    A call that could not reach the store, and certainly did nothing, raises `StoreUnavailable`; one whose settings
    or rights forbid it raises `StoreRefused`. After a fork the connections of the parent are never used again.
    """

    @property
    def statements(self) -> Counter[str]:
        """How many statements were sent, by name; `commit` counts transactions. For tests, figures and `doctor`."""
        ...

    @property
    def url(self) -> str:
        """Where it is, with secrets masked."""
        ...

    @property
    def namespace(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def open(self, *, read_only: bool = False) -> None:
        """Connect, create or migrate what is missing; any number of processes may do so at once. Idempotent.

        With `read_only` nothing is created, migrated or written, neither now nor by a later call that reads. Raises
        `EmptyStore` where nothing of ours is there, and `StoreRefused` where the schema is older than this code needs.
        The first call that writes opens it for writing. A store that is open already stays as it is.
        """
        ...

    def close(self) -> None:
        """Close every connection; a later call opens again."""
        ...

    def clock(self) -> int:
        """The store's time in microseconds since 1970."""
        ...

    def identity(self) -> str:
        """Which server answers: another one after a failover, or after its files were replaced.

        A text without spaces, at most 80 characters; the same for every client of one server, and as long as that
        server goes on where it stopped.
        """
        ...

    def update(
        self, which: Which, change: ChangeFn, *, session: str | None = None, gate: Gate | None = None
    ) -> Applied:
        """Apply `change` to each selected document, each atomically with the records of its change.

        Of any number of callers at once, one wins; losing a race is not an error. A record whose run and attempt are in
        the log already is not appended: the first one stays, the change stands, and the result names the first unless
        both are equal. With `session`, documents are written only if that session is live at the very commit, else
        nothing is and `alive` is False. With `gate`, which goes with `session`, they are written only if the gate
        stands open, else nothing is and `shut` is True.
        """
        ...

    def read(self, which: Which) -> tuple[Doc, ...]:
        """The selected documents as they are; missing names are simply not there."""
        ...

    def holders(self) -> frozenset[str]:
        """The sessions that any document names as a holder, whether or not those sessions exist."""
        ...

    def names(self, kind: Kind, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        """The names of documents of a kind, in their order, after the name `after`."""
        ...

    def marked(self, mark: Mark, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        """The names of jobs that bear a mark (one of several, if several are given), in their order, after a name."""
        ...

    def count_jobs(self) -> JobCounts:
        """How many jobs there are, and how many bear each mark, without a look at their documents."""
        ...

    def due_times(
        self, limit: int = 100, *, after: tuple[int, str] | None = None, until: int | None = None
    ) -> tuple[tuple[int, str], ...]:
        """`due_at` and name of jobs of any pool, the earliest first, after such a pair and before an instant."""
        ...

    def history(self, query: Query) -> Page:
        """Records of the log, newest first."""
        ...

    def newest(self, jobs: Sequence[str], limit: int) -> Mapping[str, tuple[Record, ...]]:
        """The newest `limit` records of each of these jobs, newest first; a job without records is not there.

        Neither may be a job that does not exist. For listings that show something of each job: the cost is that of what
        is returned, in few calls.
        """
        ...

    def tally_by_time(
        self, since: int, until: int, bucket: int, *, job: str | None = None
    ) -> Mapping[int, Mapping[str, int]]:
        """Count the records with `since <= recorded_at < until` by status, in parts of `bucket` microseconds.

        Each part is named by its beginning, the first one begins at `since`, and empty ones are left out; there are at
        most `log.PARTS` of them. A summary counts each of its slots.
        """
        ...

    def density(self, since: int, until: int, bucket: int) -> Mapping[tuple[int, str | None], Mapping[str, int]]:
        """Count as `tally_by_time` does, for each node by itself; None stands for slots that no node ran.

        The span is an hour at most: no store has an index by node, so every record of it is looked at.
        """
        ...

    def prune(self, before: int, limit: int) -> int:
        """Remove up to `limit` records from before then, and swept sessions that ended before then."""
        ...

    def blocked(self) -> Sequence[Blocked]:
        """Documents that are set aside at the moment."""
        ...

    def unblock(self, kind: Kind, name: str) -> bool:
        """Let a document that was set aside take part again."""
        ...

    def signal(self) -> None:
        """Wake the waiters of all clients, where the store can. `update` does so itself for changes that `wakes`."""
        ...

    def wait(self, timeout: float) -> bool:
        """Return True early when another client made a change that `wakes` or signalled; False after `timeout` s."""
        ...

    def checks(self) -> Sequence[Check]:
        """What `doctor` shows of this store: settings, rights, durability, schema."""
        ...

    def shift_clock(self, by: int) -> None:
        """Tests only: move this client's view of the store's time by microseconds."""
        ...
