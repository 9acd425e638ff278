"""One `update`: rounds of select, decide, compare and swap, until every selected document has its verdict.

A conflict is tried again. A batch that the database refuses is repeated one document at a time, and a document that
fails alone is set aside while the rest goes on. A commit whose answer never came is `unknown`, and nothing else.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from solocron.errors import SolocronError, StoreError, StoreRefused, StoreUnavailable
from solocron.model.change import Kind
from solocron.model.documents.run import Record
from solocron.stores.contract import Applied, ChangeFn, Gate, Named, Result, Verdict, Which
from solocron.stores.documents import kind_of
from solocron.stores.sql.drafts import Draft, draft
from solocron.stores.sql.types import Poisoned, Retry, Selection, UnknownOutcome

if TYPE_CHECKING:
    from solocron.stores.sql.store import SqlStore

__all__ = ["Update"]

log = logging.getLogger(__name__)

_BLOCKED = Verdict.BLOCKED
_ROUNDS = 8
"""How often it tries again what it lost to others before it calls it contended."""


class _NotLive(Exception):
    """The session that the update is tied to is not live."""


class _Shut(Exception):
    """The gate that the update names does not stand open."""


class Update:
    """Used once."""

    def __init__(
        self, store: SqlStore[Any], which: Which, change: ChangeFn, session: str | None, gate: Gate | None = None
    ) -> None:
        self.store = store
        self.which = which
        self.kind = kind_of(which)
        self.change = change
        self.session = session
        self.gate = gate
        self.seen: tuple[str, str] | None = None
        self.results: dict[str, Result | None] = {}
        """By name; None where others have been faster so far."""
        self.whole: Selection | None = None
        """What `which` found when it was last asked for as a whole."""
        self.told = 0
        """The store's own time when it was asked; 0 while it has told none."""
        self.asides: list[tuple[str, str]] = []
        self.holds: bool | None = None
        # Each wait for rows may take a fifth of a lease: not eight of them in a row.
        self.until = store.boot() + store.patience
        self.todo: deque[tuple[Which, int]] = deque([(which, 0)])

    def run(self) -> Applied:
        try:
            while self.todo:
                which, attempt = self.todo.popleft()
                try:
                    self._round(which, attempt)
                except Retry as error:
                    self._again(which, attempt, error)
        except (_NotLive, _Shut) as error:
            if not self._written:
                shut = isinstance(error, _Shut)
                return Applied(results=(), now=self.told, alive=shut, shut=shut)
            # else: written while the session lived; the next call will tell
        except StoreError:
            if not self._written:
                raise
            # else: what is written is written; the rest is contended
        for name, reason in self.asides:
            self._set_aside(name, reason)
        following = None if self.whole is None else self.whole.next_due
        results = tuple([result or Result(name, Verdict.CONTENDED) for name, result in self.results.items()])
        return Applied(results=results, now=self.told, next_due=following, holds=self.holds, gate=self.seen)

    @property
    def last(self) -> str | None:
        """The last name of the selection."""
        return next(reversed(self.whole.rows), None) if self.whole is not None else None

    @property
    def _written(self) -> bool:
        done = (Verdict.APPLIED, Verdict.UNKNOWN)
        return any(result is not None and result.verdict in done for result in self.results.values())

    def _round(self, which: Which, attempt: int) -> None:
        """Select, decide and commit once."""
        store = self.store
        writing: list[Draft] = []
        lost: set[str] = set()
        duplicates: dict[str, tuple[Record, ...]] = {}
        try:
            with store.pool.link(renews=self.kind is Kind.SESSION and self.session is None) as link:
                selection = store.recall(which, self.session) if attempt == 0 else None
                if selection is None:
                    selection = store.select(link, which, self.session, change=True)
                    if which is self.which or not self.told:
                        self.told = selection.now
                if which is self.which:
                    self.whole = selection
                    self.results = dict.fromkeys(selection.rows)
                if not selection.alive:
                    store.abandon(link)
                    raise _NotLive
                drafts = self._drafts(selection)
                writing = [one for one in drafts if one.writes]
                if selection.recalled and len(writing) < len(drafts):
                    # Of some nothing would be compared with the store: what is remembered is no answer to anybody.
                    self.todo.append((which, attempt + 1))
                    return
                if writing:
                    outcome = store.commit(link, writing, self.session, selection, self.gate)
                    if not outcome.alive:
                        raise _NotLive
                    if outcome.shut:
                        raise _Shut
                    lost, self.holds, self.seen = outcome.lost, outcome.holds, outcome.gate
                    duplicates = store.duplicates(writing) if outcome.short else {}
                    self.told = self.told or outcome.told
                else:
                    store.abandon(link)
        except Poisoned as error:
            self._single_out(which, [one.name for one in writing], error)
        except UnknownOutcome as error:
            for one in writing:
                self.results[one.name] = Result(one.name, Verdict.UNKNOWN, error=str(error))
        else:
            claimed = self.session is not None  # its end will ask for the same documents
            for one in drafts:
                if one.name in lost:
                    continue
                self._settle(one.result(duplicates.get(one.name, ())))
                if claimed and one.state and one.change is not None:
                    version = "" if one.version is None else one.version + 1
                    self.store.recent.put(one.fixed_now, one.state, one.change.doc, version)
            if lost and attempt + 1 < _ROUNDS:
                self.todo.append((Named(self.kind, tuple(sorted(lost))), attempt + 1))

    def _drafts(self, selection: Selection) -> list[Draft]:
        """What the change wants of each; a document that has left the selection since is not handed to it."""
        drafts = []
        which = None if selection is self.whole else self.which
        for name, row in selection.rows.items():
            one = draft(self.kind, name, row, self.change, selection.now, which=which, recent=self.store.recent)
            if one is None:
                self.results.pop(name, None)
            else:
                drafts.append(one)
        return drafts

    def _settle(self, result: Result) -> None:
        self.results[result.name] = result
        if result.verdict is _BLOCKED:
            self.asides.append((result.name, result.error or "unknown"))

    def _again(self, which: Which, attempt: int, error: Exception) -> None:
        if attempt + 1 < _ROUNDS and self.store.boot() < self.until:
            self.todo.append((which, attempt + 1))
        elif isinstance(which, Named):
            for name in which.names:
                self.results.setdefault(name, None)
        elif self.whole is None:
            # An empty answer would say that nothing is there, and a sweep would believe it.
            raise StoreUnavailable(f"{error}; nothing was written. It is worth trying again.")

    def _single_out(self, which: Which, names: Sequence[str], error: Poisoned) -> None:
        """Repeat a refused batch one document at a time; one that fails alone is set aside."""
        if not names and isinstance(which, Named):
            names = which.names  # refused before anything was read: a name that the database cannot even look for
        if len(names) > 1:
            self.todo.extend((Named(self.kind, (name,)), 1) for name in names)
        elif names:
            self._settle(Result(names[0], Verdict.BLOCKED, error=str(error)))
        else:
            raise StoreRefused(f"{self.store.url} refused a selection ({error}); nothing was written.")

    def _set_aside(self, name: str, reason: str) -> None:
        try:
            self.store.set_aside(self.kind, name, reason)
        except SolocronError:
            # It stays due and is met again; the verdict has been told either way.
            log.warning("document not set aside", extra={"kind": self.kind, "document": name, "reason": reason})
