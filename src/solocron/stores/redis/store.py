"""The Redis store: finds documents, replaces those that no other client changed, keeps the log, tells Redis' time."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import redis.exceptions as driver

from solocron.clock import SECOND
from solocron.duration import to_us
from solocron.errors import EmptyStore, InvalidError, StoreRefused, StoreUnavailable
from solocron.model.change import Kind
from solocron.model.documents.run import Record
from solocron.stores.contract import (
    All,
    Blocked,
    Capabilities,
    Check,
    Doc,
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
from solocron.stores.documents import counted, earliest, kind_of
from solocron.stores.drafts import Draft, Row, Selection, Written, decoded, readable
from solocron.stores.kernel import StoreKernel, Transaction
from solocron.stores.log import DENSITY_SPAN, density_within, divided
from solocron.stores.paging import read_page
from solocron.stores.redis import layout, settings
from solocron.stores.redis.access import Access
from solocron.stores.redis.address import is_cluster
from solocron.stores.redis.caller import Caller
from solocron.stores.redis.drafts import spelt
from solocron.stores.redis.link import IDLE_MOST, RedisLink, Wire
from solocron.stores.redis.log import Log
from solocron.stores.redis.namespaces import namespaces_of
from solocron.stores.redis.pubsub import Notifications
from solocron.stores.redis.transaction import PORTION, RedisTransaction
from solocron.stores.stock import Stock, stock_of
from solocron.stores.url import Secret, StoreUrl, parse
from solocron.stores.waiting import wait_when_open
from solocron.stores.weakness import nothing_at, warn_of
from solocron.stores.write_cache import WriteCache

__all__ = ["RedisStore"]


_DUE_TIMES = 1_000
"""Jobs per call of `due_times`."""
_RECALLED = frozenset((Kind.SESSION, Kind.JOB, Kind.LOCK))


class RedisStore(StoreKernel):
    """One client of a namespace in Redis or Valkey."""

    statements: Counter[str]
    portion = PORTION

    def __init__(
        self, url: str | Secret, *, namespace: str = "default", lease: timedelta = timedelta(seconds=15)
    ) -> None:
        self._parts = parse(url)
        if not namespace or any(character in "{}\r\n" for character in namespace):
            raise InvalidError("a namespace is not empty and holds no braces and no line breaks. Nothing was opened.")
        seconds = lease.total_seconds()
        # A commit and the question for its lost answer both fit into a third of the lease.
        timeout = min(5.0, max(seconds / 6, 0.05))
        self._link = RedisLink(self._parts, timeout=timeout, stock=_stock(self._parts, timeout))
        self._namespace = namespace
        self._caller = Caller(self._link, f"{{solocron:{namespace}}}", lease=seconds)
        self.statements = self._caller.statements
        self._notifications = Notifications(self._link, self._caller.channel, self._last_number)
        self._cache = WriteCache(self.boot, to_us(lease), recalls=_RECALLED, jobs_within=SECOND)
        self._access = Access(
            self._caller, url=self.url, cache=self._cache, notified=self._notifications.sent, lost=self._writes_lost
        )
        self._log = Log(self._caller)
        self._facts: settings.Facts | None = None
        self._lost = ""
        self._opened = False
        self._looking = False
        self._only_reads = False
        """As it was opened last, or was to be: also where nothing was there, `checks` writes nothing for a reader."""
        self._process = os.getpid()
        self._opening = threading.RLock()

    def __repr__(self) -> str:
        return f"<RedisStore {self.url} namespace={self._namespace}>"

    @property
    def url(self) -> str:
        return self._parts.masked

    @property
    def namespace(self) -> str:
        return self._namespace

    @property
    def capabilities(self) -> Capabilities:
        if self._facts is None:
            return Capabilities(tier=Tier.C, why="not opened yet, so nothing is known of it")
        return settings.capabilities(self._facts, self._link.address)

    # --- opening and looking after

    def open(self, *, read_only: bool = False) -> None:
        if self._process != os.getpid():  # a fork may have copied the mutex in another thread's hand
            self._process, self._opening = os.getpid(), threading.RLock()
        with self._opening:
            if self._opened or (read_only and self._looking):
                return
            self._only_reads = read_only
            facts = self._ask(read_only=read_only)
            self._refuse(facts)
            if read_only:
                self._find_layout()
            else:
                layout.apply_layout(self._caller, self._place)
                self._notifications.open()
            if self._facts is None:
                found = settings.capabilities(facts, self._link.address)
                if found.tier is Tier.C:  # B is what a well-kept Redis is
                    warn_of(self.url, found)
            self._facts = facts
            self._opened, self._looking = not read_only, read_only

    def _open_for_reading(self) -> None:
        """Open the store, unless it is open for reading already."""
        if not self._looking:
            self.open()

    def close(self) -> None:
        self._opened = self._looking = False
        self._notifications.close()
        self._link.close()

    def clock(self) -> int:
        self._open_for_reading()
        seconds, microseconds = self._caller.command("TIME")
        return int(seconds) * SECOND + int(microseconds) + self._access.shift

    def checks(self) -> Sequence[Check]:
        lines = [*settings.checks(self._ask(read_only=self._only_reads), self._link.address)]
        if self._lost:
            remedy = "run `solocron restored`, and see to durability"
            lines.append(Check("kept writes", "FAIL", f"{self._lost}, while this process used it", remedy))
        return lines

    def shift_clock(self, by: int) -> None:
        self._access.shift += by

    def _ask(self, *, read_only: bool) -> settings.Facts:
        if read_only:  # whether this user may write can only be tried by writing
            return settings.ask(self._caller.command, refused=None, listens=True)
        refused = self._caller.run("rights", (self._link.client,)).decode()
        return settings.ask(self._caller.command, refused=refused, listens=self._may_listen())

    def _may_listen(self) -> bool:
        """Return whether this user may send notifications and receive them."""
        connection = self._link.new_connection()
        try:
            for words in (("PUBLISH", self._caller.channel, "- 0"), ("SUBSCRIBE", self._caller.channel)):
                connection.send_command(*words)
                connection.read_response()
        except driver.ResponseError:
            return False
        except (driver.RedisError, OSError):
            raise StoreUnavailable(f"{self.url} broke off while it was being opened; nothing was done") from None
        finally:
            connection.disconnect()
        return True

    def _refuse(self, facts: settings.Facts) -> None:
        """Raise where nothing can work; what only costs the tier is warned of."""
        for check in settings.checks(facts, self._link.address):
            if check.name in ("server", "role", "rights") and check.level == "FAIL":
                raise StoreRefused(f"{self.url}: {check.detail}; nothing was written. {check.remedy}.")

    def _find_layout(self) -> None:
        """Check the layout without writing: a namespace that no node has opened for writing has none."""
        if self.layout() is None:
            raise EmptyStore(nothing_at(self.url, f"namespace {self._namespace!r} has no keys"))

    def layout(self) -> layout.Layout | None:
        """Return the layout of this namespace; None where no node has opened it yet."""
        return layout.read_layout(self._caller, self._place)

    @property
    def _place(self) -> str:
        return f"namespace {self._namespace!r} at {self.url}"

    def _writes_lost(self, said: str) -> None:
        self._lost = said
        self._opened = False  # the layout's mark may be among them

    # --- documents

    def identity(self) -> str:
        self._open_for_reading()
        told: str = self._caller.run("server", ()).decode()
        return told

    @contextmanager
    def transaction(self, kind: Kind) -> Iterator[Transaction]:
        round_ = RedisTransaction(self._access)
        try:
            yield round_
        finally:
            round_.abandon()

    def document(self, kind: Kind, row: Row) -> Doc:
        if row.mark == "!":
            raise ValueError(f"the key of {kind} {row.name!r} is not a document: {row.fixed}")
        known = self._cache.parsed(kind, row) if kind is Kind.JOB else None
        return decoded(kind, row) if known is None else known

    def prepare(self, draft: Draft) -> None:
        draft.extra = spelt(draft)

    def names_of(self, which: Named | HeldBy | HeldByAny | RecentSessions) -> Sequence[str] | None:
        return tuple(dict.fromkeys(which.names)) if isinstance(which, Named) else self._access.names(which)

    def recall(self, which: Named) -> Selection | None:
        found, shift = self._cache.recall(which), self._access.shift
        return found and replace(found, now=found.now + shift, latest=(found.latest or 0) + shift)

    def remember(self, drafts: Sequence[Draft], outcome: Written, session: str | None) -> None:
        self._cache.remember(drafts, lambda one: outcome.mark and f"{outcome.mark}{one.extra.mark}", session)

    def times_aside(self, kind: Kind, name: str) -> int:
        return self._access.times_aside(kind, name)

    def put_aside(self, aside: Blocked) -> None:
        self._access.put_aside(aside)

    def read(self, which: Which) -> tuple[Doc, ...]:
        return read_page(which, self._read)

    def _read(self, which: Which) -> list[tuple[str, Doc | None]]:
        self._open_for_reading()
        kind = kind_of(which)
        rows = [row for page in self._access.pages(which) for row in page.rows]
        return [(row.name, readable(kind, row, self.document) if row.mark else None) for row in rows]

    def names(self, kind: Kind, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        self._open_for_reading()
        return tuple(self._access.names(All(kind, after, limit)))

    def marked(self, mark: Mark, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        """The marked jobs are few, and in one hash: names and marks are read whole, and sorted here."""
        return tuple(sorted(name for name, marks in self._marks() if marks & mark and name > after)[:limit])

    def count_jobs(self) -> JobCounts:
        marks = self._marks()
        total = self._caller.command("ZCARD", self._caller.key("names:job"))
        return counted(int(total), ((each, 1) for _, each in marks))

    def _marks(self) -> list[tuple[str, int]]:
        self._open_for_reading()
        found = self._caller.command("HGETALL", self._caller.key("marks"))
        return [(name.decode(), int(marks)) for name, marks in zip(found[::2], found[1::2], strict=True)]

    def due_times(
        self, limit: int = 100, *, after: tuple[int, str] | None = None, until: int | None = None
    ) -> tuple[tuple[int, str], ...]:
        self._open_for_reading()
        return earliest(self._every_due_time(), limit, after=after, until=until)

    def _every_due_time(self) -> Iterator[tuple[int, str]]:
        name = ""
        while True:
            last, *found = self._caller.run("due_times", (name, str(_DUE_TIMES)))
            name = last.decode()
            if not name:
                return
            yield from ((int(due), job.decode()) for job, due in zip(found[::2], found[1::2], strict=True))

    def holders(self) -> frozenset[str]:
        self._open_for_reading()
        return frozenset(name.decode() for name in self._caller.command("HKEYS", self._caller.key("holders")))

    def namespaces(self) -> frozenset[str]:
        """The namespaces of this server and database, or of the whole cluster."""
        return namespaces_of(self._parts, timeout=self._link.timeout)

    # --- the log

    def history(self, query: Query) -> Page:
        self._open_for_reading()
        return self._log.history(query)

    def newest(self, jobs: Sequence[str], limit: int) -> Mapping[str, tuple[Record, ...]]:
        self._open_for_reading()
        return self._log.newest(jobs, limit)

    def tally_by_time(
        self, since: int, until: int, bucket: int, *, job: str | None = None
    ) -> Mapping[int, Mapping[str, int]]:
        span = divided(since, until, bucket, job=job)
        self._open_for_reading()
        return self._log.tally_by_time(span, bucket)

    def density(self, since: int, until: int, bucket: int) -> Mapping[tuple[int, str | None], Mapping[str, int]]:
        span = divided(since, until, bucket, longest=DENSITY_SPAN)
        self._open_for_reading()
        return density_within(span, bucket, self._log.records(span))

    def prune(self, before: int, limit: int) -> int:
        self.open()
        return self._log.prune(before, limit)

    # --- documents that were set aside

    def blocked(self) -> Sequence[Blocked]:
        now = self.clock()
        found = self._caller.command("HGETALL", self._caller.key("blocked"))
        asides = []
        for field, value in zip(found[::2], found[1::2], strict=True):
            kind, name = field.decode().split(":", 1)
            until, times, reason = value.decode().split(" ", 2)
            if int(until) > now:
                asides.append(Blocked(Kind(kind), name, int(until), reason, int(times)))
        return sorted(asides, key=lambda aside: (aside.kind, aside.name))

    def unblock(self, kind: Kind, name: str) -> bool:
        self.open()
        number = int(self._caller.run("unblock", (kind, name, f"{self._link.client}.")))
        if number:
            self._notifications.sent(number)
        return number > 0

    # --- waking up

    def signal(self) -> None:
        self._notifications.nudge()
        try:
            self._caller.run("signal", ())
        except StoreUnavailable:
            pass  # a wake-up is a bonus: waiting clients poll, and the next call reports that the store is away

    def wait(self, timeout: float) -> bool:
        return wait_when_open(self.open, self._notifications, self._notifications.wait, timeout)

    def _last_number(self) -> int:
        return int(self._caller.command("GET", self._caller.key("notifications")) or 0)


def _stock(parts: StoreUrl, timeout: float) -> Stock[Wire]:
    """Return the stock of stores that differ in their namespaces only; in a cluster each has its own server."""
    alike = ("redis", parts.secret, timeout)
    return stock_of(None if is_cluster(parts) else alike, keep=IDLE_MOST)
