"""`SwapStore`: the kernel's verbs over a `KeyStore`. Rounds, verdicts, setting aside and retries are the kernel's."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from heapq import merge

from solocron.clock import MILLISECOND
from solocron.duration import to_us
from solocron.errors import EmptyStore, StoreError, StoreRefused, StoreUnavailable
from solocron.model.change import Change, Kind
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
from solocron.stores.documents import earliest, kind_of
from solocron.stores.drafts import Draft, Row, Selection, Written, decoded, is_swept_before, readable
from solocron.stores.kernel import StoreKernel, Transaction
from solocron.stores.log import DENSITY_SPAN, divided
from solocron.stores.paging import read_page
from solocron.stores.swap.asides import Asides
from solocron.stores.swap.calls import KeyCalls
from solocron.stores.swap.checks import common_checks
from solocron.stores.swap.key_store import ABSENT, KeyStore, Lost, Span
from solocron.stores.swap.layout import DUE, LAYOUT, NOTIFY, due_of, instant
from solocron.stores.swap.log import SwapLog
from solocron.stores.swap.notify import SwapNotifications
from solocron.stores.swap.portions import wish_of
from solocron.stores.swap.selecting import Selector, pages_of
from solocron.stores.swap.transaction import SwapTransaction
from solocron.stores.waiting import wait_when_open
from solocron.stores.weakness import nothing_at, warn_of
from solocron.stores.write_cache import WriteCache

__all__ = ["SwapStore"]

_RECALLED = frozenset((Kind.SESSION, Kind.JOB, Kind.LOCK))
_WITHIN = 100 * MILLISECOND
"""How far behind the server's clock the time of a renewal or of a lock may be."""
_VERSION = "1"
"""The layout that this code writes."""


class SwapStore(StoreKernel):
    """One client of a namespace on a key store."""

    statements: Counter[str]
    portion = 200

    def __init__(self, keys: KeyStore, *, namespace: str = "default", lease: timedelta = timedelta(seconds=15)) -> None:
        self.namespace = namespace
        self._keys = keys
        self._lease = lease.total_seconds()
        self._within = min(to_us(lease) // 50, _WITHIN)
        self._cache = WriteCache(self.boot, to_us(lease), recalls=_RECALLED)
        self._calls = KeyCalls(keys, self._cache, self.boot)
        self.statements = self._calls.statements
        self._selector = Selector(self._calls, self.boot)
        self._log = SwapLog(self._calls)
        self._asides = Asides(self._calls)
        self._notifications = SwapNotifications(keys)
        self._opening = threading.RLock()
        self._opened = self._looking = self._known = False

    def __repr__(self) -> str:
        return f"<SwapStore {self.url} namespace={self.namespace}>"

    @property
    def url(self) -> str:
        return self._keys.url

    @property
    def capabilities(self) -> Capabilities:
        return self._keys.capabilities

    # --- opening and looking after

    def open(self, *, read_only: bool = False) -> None:
        if self._calls.process != os.getpid():
            self._begin_anew()
        with self._opening:
            if self._opened or (read_only and self._looking):
                return
            self._keys.open()
            self._check_layout(read_only=read_only)
            if not read_only:
                self._notifications.open()
            if not self._known and self._keys.capabilities.tier is not Tier.A:
                warn_of(self.url, self._keys.capabilities)
            self._known = True
            self._opened, self._looking = not read_only, read_only

    def _begin_anew(self) -> None:
        """Forget the parent process: its threads, its place in the stream, what it wrote last."""
        self._opening = threading.RLock()
        self._opened = self._looking = False
        self._cache.forget()
        self._calls.begin()
        self._notifications.begin()

    def _check_layout(self, *, read_only: bool) -> None:
        """Refuse a namespace of another layout; mark an empty one, unless this client only reads."""
        found = self._calls.fetch([LAYOUT]).items.get(LAYOUT)
        if found is None and read_only:
            raise EmptyStore(nothing_at(self.url, f"namespace {self.namespace!r} has no keys"))
        if found is None:
            try:
                self._calls.commit({LAYOUT: ABSENT}, {LAYOUT: _VERSION})
            except Lost:
                raise StoreUnavailable(f"{self.url} did not reply while it was being opened; try again") from None
            found = self._calls.fetch([LAYOUT]).items.get(LAYOUT)
        if found is None or found.value != _VERSION:
            held = "nothing" if found is None else repr(found.value[:16])
            raise StoreRefused(
                f"namespace {self.namespace!r} at {self.url} has the layout {held}, and this Solocron knows "
                f"{_VERSION!r}; nothing was written. Upgrade (pip install -U solocron), or use another namespace."
            )

    def _open_for_reading(self) -> None:
        """Open the store, unless it is open for reading already."""
        if not self._looking or self._calls.process != os.getpid():
            self.open()

    def close(self) -> None:
        self._opened = self._looking = False
        self._notifications.close()
        self._keys.close()

    def clock(self) -> int:
        self._open_for_reading()
        self._calls.ask_time()
        return self._calls.now()

    def identity(self) -> str:
        self._open_for_reading()
        return self._calls.ask_time()

    def checks(self) -> Sequence[Check]:
        self._keys.open()  # not the store: a command that only looks makes no namespace
        return [*self._keys.checks(), *common_checks(self._calls)]

    def shift_clock(self, by: int) -> None:
        self._calls.shift += by

    def namespaces(self) -> Collection[str]:
        """Return the namespaces of this server."""
        self._keys.open()
        return self._keys.namespaces()

    # --- documents

    @contextmanager
    def transaction(self, kind: Kind) -> Iterator[Transaction]:
        yield SwapTransaction(self._calls, self._selector, patience=self._lease / 6, within=self._within)

    def document(self, kind: Kind, row: Row) -> Doc:
        if row.mark.header is None:
            raise ValueError(f"the value of {kind} {row.name!r} is not a document")
        known = self._cache.parsed(kind, row) if kind is Kind.JOB else None
        return decoded(kind, row) if known is None else known

    def prepare(self, draft: Draft) -> None:
        draft.extra = wish_of(draft)

    def names_of(self, which: Named | HeldBy | HeldByAny | RecentSessions) -> Sequence[str] | None:
        return self._selector.names(which)

    def recall(self, which: Named) -> Selection | None:
        if which.kind in (Kind.SESSION, Kind.LOCK):
            self._keys.sharpen(self._within)
        found = self._cache.recall(which)
        # No window: the time is read now, and a decision is always made some time before its commit.
        return found and replace(found, now=self._calls.now(), latest=None)

    def remember(self, drafts: Sequence[Draft], outcome: Written, session: str | None) -> None:
        for one in drafts:
            if one.fixed is not None and one.extra.header is not None and one.extra.header.digest:
                self._calls.keep_text(one.fixed)
        self._cache.remember(drafts, lambda one: one.extra.stamp, session)

    def read(self, which: Which) -> tuple[Doc, ...]:
        self._open_for_reading()
        kind = kind_of(which)

        def rows(which: Which) -> list[tuple[str, Doc | None]]:
            found = self._selector.rows(which).items()
            return [(name, None if row is None else readable(kind, row, self.document)) for name, row in found]

        return read_page(which, rows)

    def names(self, kind: Kind, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        self._open_for_reading()
        return tuple(self._selector.names(All(kind, after, limit)))

    def holders(self) -> frozenset[str]:
        self._open_for_reading()
        return self._selector.holders()

    def marked(self, mark: Mark, after: str = "", limit: int = 1_000) -> tuple[str, ...]:
        self._open_for_reading()
        prefixes = [f"mark/{one.value}/" for one in Mark if one & mark]
        spans = [
            Span.below(prefix, after=f"{prefix}{after}" if after else None, limit=limit, bare=True)
            for prefix in prefixes
        ]
        pages = self._calls.fetch((), spans).pages
        return tuple(sorted({item.key.split("/", 2)[2] for page in pages for item in page})[:limit])

    def count_jobs(self) -> JobCounts:
        self._open_for_reading()

        def count(prefix: str) -> int:
            return sum(len(page) for page in pages_of(self._calls, Span.below(prefix, bare=True)))

        return JobCounts(all=count(f"d/{Kind.JOB}/"), marked={mark: count(f"mark/{mark.value}/") for mark in Mark})

    def due_times(
        self, limit: int = 100, *, after: tuple[int, str] | None = None, until: int | None = None
    ) -> tuple[tuple[int, str], ...]:
        """The index has the instant from which on a job can be selected; of what is set aside, the documents tell."""
        self._open_for_reading()
        aside = self._asides.names(Kind.JOB)
        low = 0 if after is None else after[0]
        walks = [self._due_in(pool, low, limit + len(aside) + 1, after, until) for pool in self._pools()]
        found = [(ready, name) for ready, name in merge(*walks) if name not in aside]
        rows = self._calls.fetch_rows(Kind.JOB, aside)[0] if aside else {}
        found += [(row.mark.header.due, name) for name, row in rows.items() if row is not None and row.mark.header]
        return earliest(found, limit, after=after, until=until)

    def _due_in(
        self, pool: str, low: int, limit: int, after: tuple[int, str] | None, until: int | None
    ) -> list[tuple[int, str]]:
        """Return instants and names of one pool, those after a pair, the earliest first."""
        begin = f"{DUE}{pool}/{instant(low)}" + (f"/{after[1]}\0" if after is not None else "")
        end = f"{DUE}{pool}0" if until is None else f"{DUE}{pool}/{instant(until)}"
        (page,) = self._calls.fetch((), (Span(begin, max(begin, end), limit, bare=True),)).pages
        return [due_of(item.key)[1:] for item in page]

    def _pools(self) -> list[str]:
        """Return the pools that have a due job some time, as they are written in keys: one small call for each."""
        found: list[str] = []
        low = DUE
        while True:
            (page,) = self._calls.fetch((), (Span(low, f"{DUE[:-1]}0", 1, bare=True),)).pages
            if not page:
                return found
            found.append(page[0].key.split("/", 2)[1])
            low = f"{DUE}{found[-1]}0"

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
        return self._log.density(span, bucket)

    def prune(self, before: int, limit: int) -> int:
        self.open()
        removed = self._log.prune(before, limit)
        (page,) = self._calls.fetch((), (Span("swept/", f"swept/{instant(before)}", limit, bare=True),)).pages
        if page:
            names = tuple(item.key.split("/", 2)[2] for item in page)
            self.update(
                Named(Kind.SESSION, names), lambda doc, now: Change(None) if is_swept_before(doc, before) else None
            )
        return removed

    # --- documents that were set aside

    def times_aside(self, kind: Kind, name: str) -> int:
        return self._asides.times(kind, name)

    def put_aside(self, aside: Blocked) -> None:
        self._asides.put(aside)

    def blocked(self) -> Sequence[Blocked]:
        now = self.clock()
        return sorted((one for one in self._asides.all() if one.until > now), key=lambda one: (one.kind, one.name))

    def unblock(self, kind: Kind, name: str) -> bool:
        self.open()
        found = self._asides.let_in(kind, name)
        if found:
            self.signal()
        return found

    # --- waking up

    def signal(self) -> None:
        if self._calls.process == os.getpid():
            self._notifications.nudge()
        try:
            self.open()
            self._calls.commit({}, {NOTIFY: f"- {self._calls.token()}"})
        except (StoreError, Lost):
            pass  # a wake-up is a bonus: waiting clients poll, and the next call reports that the store is away

    def wait(self, timeout: float) -> bool:
        def listen(seconds: float) -> bool:
            return self._notifications.wait(self._calls.client, seconds)

        return wait_when_open(self.open, self._notifications, listen, timeout)
