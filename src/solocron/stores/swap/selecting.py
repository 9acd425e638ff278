"""Finds documents by their index keys, for updates and for readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from heapq import merge
from typing import NamedTuple
from urllib.parse import unquote

from solocron.clock import SECOND
from solocron.model.change import Kind
from solocron.model.documents.namespace import NAME
from solocron.stores.contract import All, Due, HeldBy, HeldByAny, Named, RecentSessions, Which
from solocron.stores.drafts import Row, Selection
from solocron.stores.swap.calls import PAGE, KeyCalls
from solocron.stores.swap.key_store import Found, Item, Span
from solocron.stores.swap.layout import (
    Stamp,
    aside_key,
    blocked_in,
    document_key,
    due_of,
    instant,
    live_key,
    pool_prefix,
    quoted,
    unpacked,
)
from solocron.stores.swap.turns import ClaimTurns

__all__ = ["Seen", "Selector", "pages_of"]

_LIVE = "live/"
_AHEAD = SECOND
"""How far ahead of this client's time a document may have been written for its time to count."""


class Seen(NamedTuple):
    """What a selection saw beside its documents, if it was for a session."""

    session: Row | None = None
    namespace: Row | None = None
    server: str = ""
    live: tuple[str, ...] = ()


class Selector:
    """The selections of one client."""

    def __init__(self, calls: KeyCalls, boot: Callable[[], float]) -> None:
        self._calls = calls
        self._turns = ClaimTurns(boot)
        self._live = 1
        """Live sessions when they were last counted."""

    def lost_race(self, kind: Kind) -> None:
        """Note that another client was faster."""
        if kind is Kind.JOB:
            self._turns.lost_race()

    def select(self, which: Which, session: str | None) -> tuple[Selection, Seen]:
        """Find documents for a change, and read what the commit will check."""
        more = _keys_of(session)
        if isinstance(which, Due):
            return self._due(which, session)
        if isinstance(which, Named):
            rows, found = self._calls.fetch_rows(which.kind, which.names, more)
            rows = {name: rows[name] for name in which.names}
        else:
            assert isinstance(which, All)
            span = _all(which)
            found = self._calls.fetch(more, (span,))
            rows = self._calls.rows(which.kind, _by_name(which.kind, found.pages[0]))
        return self._selection(rows, found, session), _sight(found, session)

    def _selection(
        self, rows: dict[str, Row | None], found: Found, session: str | None, following: int | None = None
    ) -> Selection:
        alive = session is None or live_key(session) in found.items
        return Selection(rows, self._not_before(rows.values()), alive, following)

    def _not_before(self, rows: Iterable[Row | None]) -> int:
        """Return the time, raised to that of a document which a client with a better estimate has written."""
        now = self._calls.now()
        headers = [row.mark.header for row in rows if row is not None and row.mark.header is not None]
        latest = max((header.time for header in headers), default=0) + self._calls.shift
        return latest if now < latest <= now + _AHEAD else now

    # --- due

    def _due(self, which: Due, session: str | None) -> tuple[Selection, Seen]:
        turns = session is not None and self._turns.are_taken
        limit = max(which.limit, 0) * (self._live if turns else 1)
        spans = [Span.below(pool_prefix(pool), limit=limit + len(which.exclude) + 1) for pool in sorted(which.pools)]
        live = (Span.below(_LIVE, bare=True),) if turns else ()
        found = self._calls.fetch(_keys_of(session), (*spans, *live))
        sight = _sight(found, session)
        if turns:
            sight = sight._replace(live=tuple(item.key.removeprefix(_LIVE) for item in found.pages[-1]))
            self._live = max(1, len(sight.live))
        now = self._calls.now()
        walks = [self._walk(which, span, list(page)) for span, page in zip(spans, found.pages, strict=False)]
        due, following = list[tuple[int, str]](), None
        for ready, name in merge(*walks):
            if ready > now or len(due) == limit:
                following = ready
                break
            due.append((ready, name))
        if turns and session is not None:
            due, left = self._turns.split(due, session, sight.live, now)
            due, over = due[: which.limit], due[which.limit :]
            moments = [ready for ready, _ in (*over, *left)] + ([] if following is None else [following])
            following = min(moments, default=None)
        rows, moved = self._still_due(which, {name: ready for ready, name in due})
        following = min((one for one in (following, *moved) if one is not None), default=None)
        return self._selection(rows, found, session, following), sight

    def _walk(self, which: Due, span: Span, page: list[Item]) -> Iterator[tuple[int, str]]:
        """Yield instants and names of one pool, the earliest first; foreign handlers and excluded names are passed."""
        while True:
            for item in page:
                _, ready, name = due_of(item.key)
                if item.value in which.handlers and name not in which.exclude:
                    yield ready, name
            if span.limit is None or len(page) < span.limit:
                return
            span = Span(f"{page[-1].key}\0", span.high, PAGE)
            page = list(self._calls.fetch((), (span,)).pages[0])

    def _still_due(self, which: Due, due: dict[str, int]) -> tuple[dict[str, Row | None], list[int]]:
        """Return the rows of jobs that are still due as their index keys say, and the new instants of the others."""
        if not due:
            return {}, []
        rows, _ = self._calls.fetch_rows(Kind.JOB, due)
        chosen: dict[str, Row | None] = {}
        moved: list[int] = []
        for name, ready in due.items():
            row = rows[name]
            if row is None:
                continue
            header = row.mark.header
            if header is None:
                until = self._aside_until(name)
                if until <= self._calls.now():
                    chosen[name] = row
                else:
                    moved.append(until)
            elif header.ready is not None and instant(header.ready) == instant(ready):
                chosen[name] = row
            elif header.ready is not None and header.handler in which.handlers and header.pool in which.pools:
                moved.append(header.ready)
        return chosen, moved

    def _aside_until(self, name: str) -> int:
        """Return until when a job is set aside whose header cannot say so."""
        key = aside_key(Kind.JOB, name)
        item = self._calls.fetch([key]).items.get(key)
        return 0 if item is None else blocked_in(key, item.value).until

    # --- names and readers

    def names(self, which: Named | HeldBy | HeldByAny | RecentSessions | All) -> list[str]:
        """Return the names of a selection in the order of its results."""
        match which:
            case Named(_, names):
                return list(dict.fromkeys(names))
            case HeldBy(session, kind):
                return self._last_parts(Span.below(f"held/{kind}/{quoted(session)}/", bare=True), 3)
            case HeldByAny(kind):
                return sorted(set(self._last_parts(Span.below(f"held/{kind}/", bare=True), 3)))
            case RecentSessions(since):
                spans = [Span.below(_LIVE, bare=True), Span.below("dead/", bare=True)]
                if since is not None:
                    spans.append(Span(f"swept/{instant(since)}", "swept0", bare=True))
                pages = self._calls.fetch((), spans).pages
                found = [item.key.split("/", 2)[2] for item in pages[2]] if since is not None else []
                return sorted({*found, *(item.key.split("/", 1)[1] for page in pages[:2] for item in page)})
            case All(kind):
                (page,) = self._calls.fetch((), (_all(which, bare=True),)).pages
                return [item.key.removeprefix(f"d/{kind}/") for item in page]

    def holders(self) -> frozenset[str]:
        """Return every session that a document names as a holder."""
        pages = pages_of(self._calls, Span.below("held/", bare=True))
        return frozenset(unquote(item.key.split("/", 3)[2]) for page in pages for item in page)

    def _last_parts(self, span: Span, slashes: int) -> list[str]:
        return [item.key.split("/", slashes)[slashes] for item in self._calls.fetch((), (span,)).pages[0]]

    def rows(self, which: Which) -> dict[str, Row | None]:
        """Find documents for a reader."""
        if isinstance(which, Due):
            return dict(self._due(which, None)[0].rows)
        kind = which.kind
        if isinstance(which, All):
            rows: dict[str, Row | None] = {}
            for page in pages_of(self._calls, _all(which)):
                rows |= self._calls.rows(kind, _by_name(kind, page))
            return rows
        return self._calls.fetch_rows(kind, self.names(which))[0]


def pages_of(calls: KeyCalls, span: Span) -> Iterator[list[Item]]:
    """Yield a span a page at a time."""
    left = span.limit
    while left is None or left > 0:
        size = PAGE if left is None else min(left, PAGE)
        page = list(calls.fetch((), (replace(span, limit=size),)).pages[0])
        if page:
            yield page
        if len(page) < size:
            return
        left = None if left is None else left - size
        last = page[-1].key
        span = replace(span, high=last, limit=left) if span.reverse else replace(span, low=f"{last}\0", limit=left)


def _keys_of(session: str | None) -> list[str]:
    if session is None:
        return []
    return [live_key(session), document_key(Kind.SESSION, session), document_key(Kind.NAMESPACE, NAME)]


def _sight(found: Found, session: str | None) -> Seen:
    if session is None:
        return Seen(server=found.server)
    own, namespace = (_plain_row(found.items.get(key)) for key in _keys_of(session)[1:])
    return Seen(own, namespace, found.server)


def _plain_row(item: Item | None) -> Row | None:
    """Return the row of a document of which only the state is asked for."""
    if item is None:
        return None
    header, _, state = unpacked(item.value)
    return Row(item.key, Stamp(item.mark, header), "", state)


def _all(which: All, *, bare: bool = False) -> Span:
    prefix = f"d/{which.kind}/"
    after = f"{prefix}{which.after}" if which.after else None
    return Span.below(prefix, after=after, limit=which.limit, bare=bare)


def _by_name(kind: Kind, page: Iterable[Item]) -> dict[str, Item | None]:
    prefix = f"d/{kind}/"
    return {item.key.removeprefix(prefix): item for item in page}
