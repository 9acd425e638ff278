"""The contract over SQL, once for all dialects. The loop of an update is the kernel's.

A dialect says how to select (with row locks, or with versions to compare), how to commit a batch, how to tell the
time, and what the errors of its driver mean.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from heapq import nlargest
from typing import Any, ClassVar, Generic, TypeVar

from solocron.clock import SECOND, SystemClock
from solocron.duration import to_us
from solocron.errors import EmptyStore, InvalidError, StoreRefused, StoreUnavailable
from solocron.model.change import Kind
from solocron.model.documents.run import Record
from solocron.stores import forking
from solocron.stores.contract import (
    All,
    Blocked,
    Capabilities,
    Check,
    Doc,
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
from solocron.stores.documents import counted, kind_of
from solocron.stores.drafts import Draft, Row, Selection, Written, decoded, readable
from solocron.stores.kernel import StoreKernel, Transaction
from solocron.stores.log import DENSITY_SPAN, divided, key_of
from solocron.stores.mailbox import Mailbox
from solocron.stores.paging import read_page
from solocron.stores.sql import migrations
from solocron.stores.sql.history import page_of
from solocron.stores.sql.pool import Pool
from solocron.stores.sql.rows import record_of
from solocron.stores.sql.types import Committed, SqlLink
from solocron.stores.stock import stock_of
from solocron.stores.update import Poisoned, Retry, UnknownOutcome
from solocron.stores.url import StoreUrl
from solocron.stores.weakness import nothing_at, warn_of
from solocron.stores.write_cache import WriteCache

__all__ = ["SqlStore"]

_TRIES = 8
_PAGE = 500
_EVER = 2**62


L = TypeVar("L", bound=SqlLink)
T = TypeVar("T")


class SqlStore(StoreKernel, Generic[L]):
    """A namespace in a SQL database."""

    portion = 500
    recalls: ClassVar[frozenset[Kind]] = frozenset((Kind.SESSION,))
    """The kinds that can be written from the write cache, without a read before."""
    options: ClassVar[frozenset[str]] = frozenset()
    """What may stand behind the question mark of its URL."""

    def __init__(self, url: StoreUrl, *, namespace: str = "default", lease: timedelta = timedelta(seconds=15)) -> None:
        url.refuse_unknown(self.options)
        self.statements: Counter[str] = Counter()
        self._url = url
        self._namespace = namespace
        self.boot = SystemClock().boot
        self._lease = to_us(lease)
        alike = self._alike()
        stock, reading = ((alike, "writes"), (alike, "reads")) if alike is not None else (None, None)
        self.pool: Pool[L] = Pool(self._connect, stock=stock_of(stock, keep=4), lent=self._lent)
        self._reading: Pool[L] = Pool(
            partial(self._connect, read_only=True), stock=stock_of(reading, keep=2), lent=self._lent
        )
        self._shift = 0
        self.cache = WriteCache(self.boot, self._lease, recalls=self.recalls)
        self._own_notifications = 0
        self._observed_notifications = 0
        self._opened = False
        self._looking = False
        self._opening = threading.Lock()
        self._counting = threading.Lock()

    @property
    def url(self) -> str:
        return self._url.masked

    @property
    def namespace(self) -> str:
        return self._namespace

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities: ...

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url} namespace={self._namespace!r}>"

    # --- what a dialect says

    @abstractmethod
    def _connect(self, *, read_only: bool = False) -> L:
        """Return a new connection; with `read_only`, one on which the database itself refuses to write."""

    def _alike(self) -> Hashable | None:
        """Return what stores must have in common to share connections: all but the namespace.

        Timeouts are set when a connection is made and follow from the lease, and so do all options from the URL.
        """
        return type(self), self._url.secret, self._lease

    def _lent(self, link: L) -> None:
        """Use a connection that this store or another one has made."""
        link.lend(self.count)

    @abstractmethod
    def _prepare(self) -> None:
        """Create or migrate what is missing."""

    def exists(self) -> bool:
        """Return whether there is anything to connect to; only a file can be missing."""
        return True

    @abstractmethod
    def _inspect(self, link: L) -> None:
        """Learn what the database can be trusted with, and refuse one that cannot be used; changes nothing."""

    @abstractmethod
    def _schema(self, link: L) -> int | None:
        """Return the same as `schema`, on this connection."""

    @abstractmethod
    def schema(self) -> int | None:
        """Return the number of the newest migration that was applied; None where there is no schema."""

    def migrate(self) -> None:
        """Bring the schema up to date; needs the right to change tables."""
        self.open()

    @abstractmethod
    def now(self, link: L) -> int:
        """Return the store's time, shifted."""

    @abstractmethod
    def select(self, link: L, which: Which, session: str | None, *, change: bool) -> Selection:
        """Find the documents; with `change`, locked, or so that a change by others will be noticed."""

    @property
    def patience(self) -> float:
        """Seconds after which a conflict is not tried again."""
        return self._lease / SECOND / 5

    @abstractmethod
    def who_answers(self, link: L) -> str:
        """Return the identity of the server at the other end."""

    @abstractmethod
    def commit(
        self, link: L, drafts: Sequence[Draft], session: str | None, selection: Selection, gate: Gate | None
    ) -> Committed:
        """Write them all, except what others have changed in the meantime; all at once or nothing."""

    @abstractmethod
    def abandon(self, link: L) -> None:
        """End what `select` began, with nothing to write."""

    @abstractmethod
    def among(self, values: Sequence[str]) -> Any:
        """Return a list as the dialect's `{in:...}` takes it."""

    @abstractmethod
    def mailbox(self) -> AbstractContextManager[Mailbox]:
        """Where a transaction of the user's own can leave a request."""

    @abstractmethod
    def signal(self) -> None: ...

    @abstractmethod
    def wait(self, timeout: float) -> bool: ...

    @abstractmethod
    def checks(self) -> Sequence[Check]: ...

    # --- opening

    def open(self, *, read_only: bool = False) -> None:
        if self._opened or (read_only and self._looking):
            return
        forking.watch(self)
        with self._opening:
            if self._opened or (read_only and self._looking):
                return
            looked, self._looking = self._looking, False
            try:
                self._look() if read_only else self._prepare()
                self._opened, self._looking = not read_only, read_only
            except BaseException:
                self._looking = looked  # who could read before can read still
                raise
            if not looked:
                warn_of(self.url, self.capabilities)
        if not read_only:
            self._reading.close()

    def _look(self) -> None:
        """Make sure that there is something to read, and that this code can read it."""
        with self._reading.link() as link:
            self._inspect(link)
            found = migrations.SchemaStatus(self._schema(link))
        if found.applied is None:
            raise EmptyStore(nothing_at(self.url, "there are no tables"))
        if not found.current:
            raise StoreRefused(
                f"the tables of {self.url} have schema {found.applied}, and this Solocron needs {found.latest}; "
                "nothing was changed. Run `solocron migrate`, or start an upgraded node, which does the same."
            )

    @property
    def links(self) -> Pool[L]:
        """Where a call that only reads gets its connection."""
        return self._reading if self._looking else self.pool

    def _open_for_reading(self) -> None:
        """Open the store, unless it is open for reading already."""
        if not self._looking:
            self.open()

    def close(self) -> None:
        self.pool.close()
        self._reading.close()
        self._opened = self._looking = False

    def before_fork(self) -> None:
        """Get ready for a fork of this process, if a copy of a connection could do harm."""

    def after_fork(self) -> None:
        """Go on in the parent after a fork."""

    def forked(self) -> None:
        """Begin anew in the child of a fork: threads that are not here may hold locks; connections are the parent's."""
        self._opening = threading.Lock()
        self._counting = threading.Lock()
        self.cache.forget()
        self.pool.forked()
        self._reading.forked()

    def notifying(self, by: int) -> None:
        """Count our own notification before sending it, so that `wait()` in this process ignores it."""
        with self._counting:
            self._own_notifications += by

    def is_news(self, notifications: int) -> bool:
        """Return whether another client has notified since the last call, from the number of notifications in all.

        Ours may be counted before it is sent, never after: then a client may look once too often, but misses nothing.
        """
        with self._counting:
            others = notifications - self._own_notifications
            news = others > self._observed_notifications
            self._observed_notifications = max(self._observed_notifications, others)
            return news

    def count(self, name: str) -> None:
        """Count one more statement of this name."""
        with self._counting:
            self.statements[name] += 1

    # --- documents

    def clock(self) -> int:
        return self.call(self.now)

    def identity(self) -> str:
        return self.call(self.who_answers)

    @contextmanager
    def transaction(self, kind: Kind) -> Iterator[Transaction]:
        with self.pool.link(renews=kind is Kind.SESSION) as link:
            yield SqlTransaction(self, link)

    def document(self, kind: Kind, row: Row) -> Doc:
        known = self.cache.parsed(kind, row) if kind is Kind.JOB else None
        return decoded(kind, row) if known is None else known

    def recall(self, which: Named) -> Selection | None:
        found = self.cache.recall(which, whole=True)
        return found and replace(found, now=found.now + self._shift, latest=(found.latest or 0) + self._shift)

    def remember(self, drafts: Sequence[Draft], outcome: Written, session: str | None) -> None:
        self.cache.remember(drafts, _mark_after, session)

    def read(self, which: Which) -> tuple[Doc, ...]:
        return read_page(which, self._read)

    def _read(self, which: Which) -> list[tuple[str, Doc | None]]:
        kind = kind_of(which)
        found = self.call(lambda link: self.select(link, which, None, change=False))
        return [(name, None if row is None else readable(kind, row)) for name, row in found.rows.items()]

    def names(self, kind: Kind, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        statement = "job_names" if kind is Kind.JOB else "document_names"
        return tuple(row[0] for row in self._all(statement, {"kind": kind, "after": after, "limit": limit}))

    def marked(self, mark: Mark, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        rows = self._all("marked_jobs", {"mark": int(mark), "after": after, "limit": limit})
        return tuple(row[0] for row in rows)

    def count_jobs(self) -> JobCounts:
        (_, total), *marked = self._all("count_jobs", {})
        return counted(int(total), ((int(marks), int(count)) for marks, count in marked))

    def due_times(
        self, limit: int = 100, *, after: tuple[int, str] | None = None, until: int | None = None
    ) -> tuple[tuple[int, str], ...]:
        at, name = after or (-_EVER, "")
        params = {"limit": limit, "after_at": at, "after": name, "until": _EVER if until is None else until}
        return tuple((row[0], row[1]) for row in self._all("due_times", params))

    def holders(self) -> frozenset[str]:
        return frozenset(row[0] for row in self._all("holders", {}))

    def namespaces(self) -> frozenset[str]:
        """Return the namespaces that hold a job or another document."""
        return frozenset(row[0] for row in self._all("namespaces", {}))

    # --- the log

    def history(self, query: Query) -> Page:
        return self.call(lambda link: page_of(link, query, self._namespace, self.among))

    def newest(self, jobs: Sequence[str], limit: int) -> Mapping[str, tuple[Record, ...]]:
        names = sorted(set(jobs))
        found: dict[str, list[Record]] = {}
        for start in range(0, len(names), _PAGE):
            for record in map(record_of, self.newest_rows(names[start : start + _PAGE], limit)):
                found.setdefault(record.job, []).append(record)
        return {job: tuple(nlargest(limit, records, key=key_of)) for job, records in found.items()}

    def newest_rows(self, jobs: Sequence[str], limit: int) -> list[tuple[Any, ...]]:
        """Return the newest records of each job; of records of one instant perhaps more than are wanted."""
        return self._all("newest_of_jobs", {"jobs": self.among(jobs), "before_edge": limit - 1})

    def duplicates(self, drafts: Sequence[Draft]) -> dict[str, tuple[Record, ...]]:
        """Return the records that the log had already, by document; those that are equal to ours are no matter."""
        wanted = {one.name: one.change.records for one in drafts if one.change is not None and one.change.records}
        runs = sorted({record.run for records in wanted.values() for record in records})
        stored = {
            (record.run, record.attempt): record
            for start in range(0, len(runs), _PAGE)
            for record in map(
                record_of, self._all("history_of_runs", {"runs": self.among(runs[start : start + _PAGE])})
            )
        }
        found = {}
        for name, records in wanted.items():
            firsts = [(stored.get((record.run, record.attempt), record), record) for record in records]
            found[name] = tuple(first for first, record in firsts if first != record)
        return found

    def tally_by_time(
        self, since: int, until: int, bucket: int, *, job: str | None = None
    ) -> Mapping[int, Mapping[str, int]]:
        divided(since, until, bucket)
        span = {"since": since, "until": until, "bucket": bucket, "job": job}
        found: dict[int, dict[str, int]] = {}
        for part, status, count in self._all("tally_by_time" if job is None else "tally_of_job_by_time", span):
            found.setdefault(int(part), {})[status] = int(count)
        return found

    def density(self, since: int, until: int, bucket: int) -> Mapping[tuple[int, str | None], Mapping[str, int]]:
        divided(since, until, bucket, longest=DENSITY_SPAN)
        found: dict[tuple[int, str | None], dict[str, int]] = {}
        for part, node, status, count in self._all("density", {"since": since, "until": until, "bucket": bucket}):
            found.setdefault((int(part), node), {})[status] = int(count)
        return found

    def prune(self, before: int, limit: int) -> int:
        pruned = self._run("prune_runs", {"before": before, "limit": limit})
        self._run("prune_sessions", {"before": before})
        return pruned

    # --- documents that were set aside

    def blocked(self) -> Sequence[Blocked]:
        rows = self.call(lambda link: link.all("blocked", {"namespace": self._namespace, "now": self.now(link)}))
        return [Blocked(Kind(kind), name, until, reason, times) for kind, name, until, reason, times in sorted(rows)]

    def unblock(self, kind: Kind, name: str) -> bool:
        found = self._run("unblock_job" if kind is Kind.JOB else "unblock_document", {"kind": kind, "name": name})
        if found:
            self.signal()
        return found > 0

    def times_aside(self, kind: Kind, name: str) -> int:
        table = "job" if kind is Kind.JOB else "document"
        found = self._all(f"{table}_aside_before", {"kind": kind, "name": name})
        return int(found[0][0]) if found else 0

    def put_aside(self, aside: Blocked) -> None:
        table = "job" if aside.kind is Kind.JOB else "document"
        facts = {"kind": aside.kind, "name": aside.name, "until": aside.until, "reason": aside.reason}
        self._run(f"set_{table}_aside", facts | {"times": aside.times})

    def shift_clock(self, by: int) -> None:
        self._shift += by

    # --- helpers of the dialects

    def selecting(self, which: Which) -> tuple[str, dict[str, Any]]:
        """Return the statement that finds a selection (other than `Due`), and what to bind."""
        kind = kind_of(which)
        table = "jobs" if kind is Kind.JOB else "documents"
        params: dict[str, Any] = {"namespace": self._namespace, "kind": kind}
        match which:
            case Named(_, names):
                return f"named_{table}", params | {"names": self.among(sorted(set(names)))}
            case HeldBy(session):
                return f"held_{table}", params | {"holder": session}
            case HeldByAny():
                return f"held_by_any_{table}", params
            case All(_, after, limit):
                return f"all_{table}", params | {"after": after, "limit": _EVER if limit is None else limit}
            case RecentSessions(since):
                return "sessions", params | {"since": _EVER if since is None else since}
        raise AssertionError(which)

    def call(self, work: Callable[[L], T]) -> T:
        """Do something with a connection that does no harm when it is done twice."""
        self._open_for_reading()
        until = self.boot() + self.patience
        for _ in range(_TRIES):
            try:
                with self.links.link() as link:
                    return work(link)
            except Retry:
                if self.boot() > until:
                    break
            except UnknownOutcome as error:
                raise StoreUnavailable(
                    f"{error}; it may or may not have happened. Repeating it does no harm."
                ) from None
            except Poisoned as error:
                raise InvalidError(f"{self.url} cannot be asked that ({error}); nothing was written.") from None
        raise StoreUnavailable(
            f"{self.url}: others kept the rows locked; nothing was written. It is worth trying again."
        )

    def _all(self, name: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return self.call(lambda link: link.all(name, {"namespace": self._namespace, **params}))

    def _run(self, name: str, params: Mapping[str, Any]) -> int:
        self.open()
        return self.call(lambda link: link.run(name, {"namespace": self._namespace, **params}))


class SqlTransaction:
    """A round on one connection: what was selected stays locked, or is compared by its version, until the commit."""

    def __init__(self, store: SqlStore[L], link: L) -> None:
        self._store = store
        self._link = link

    def select(self, which: Which, session: str | None) -> Selection:
        return self._store.select(self._link, which, session, change=True)

    def commit(self, drafts: Sequence[Draft], selection: Selection, session: str | None, gate: Gate | None) -> Written:
        outcome = self._store.commit(self._link, drafts, session, selection, gate)
        if outcome.short:
            outcome.duplicates = self._store.duplicates(drafts)
        return outcome

    def abandon(self) -> None:
        self._store.abandon(self._link)


def _mark_after(draft: Draft) -> int | None:
    """Return the version of a document that was just written; a new one has a version that only the database knows."""
    return None if draft.mark is None else draft.mark + 1
