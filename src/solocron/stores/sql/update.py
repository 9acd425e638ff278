"""One `update`: rounds of select, decide, compare and swap, until every selected document has its verdict.

A conflict is tried again. A batch that the database refuses is repeated one document at a time, and a document that
fails alone is set aside while the rest goes on. A commit whose answer never came is `unknown`, and nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from solocron.errors import StoreUnavailable
from solocron.stores.contract import Applied, ChangeFn, Named, Result, Verdict, Which
from solocron.stores.sql.rows import Draft, draft, kind_of

if TYPE_CHECKING:
    from solocron.stores.sql.store import Selection, SqlStore

__all__ = ["Poisoned", "Retry", "UnknownOutcome", "Update"]

_ROUNDS = 8
"""How often it tries again what it lost to others before it calls it contended."""


class Retry(Exception):
    """The database settled a conflict against us (deadlock, serialization failure, lock timeout); nothing written."""


class Poisoned(Exception):
    """The database refused the data of a batch: nothing was written, and one of its documents is to blame."""


class UnknownOutcome(Exception):
    """The connection broke while committing: the batch may or may not be in the store."""


class _NotLive(Exception):
    """The session that the update is tied to is not live."""


class Update:
    """Used once."""

    def __init__(self, store: SqlStore[Any], which: Which, change: ChangeFn, session: str | None) -> None:
        self.store = store
        self.which = which
        self.kind = kind_of(which)
        self.change = change
        self.session = session
        self.results: dict[str, Result] = {}
        self.first: Selection | None = None
        self.todo: deque[tuple[Which, int]] = deque([(which, 0)])

    def run(self) -> Applied:
        while self.todo:
            which, attempt = self.todo.popleft()
            try:
                self._round(which, attempt)
            except _NotLive:
                if self._written:
                    break  # written while the session lived; the next call will tell
                return Applied(results=(), now=self._now, alive=False)
            except Retry as error:
                self._again(which, attempt, error)
            except StoreUnavailable:
                if not self._written:
                    raise
                break  # what is written is written; the rest is contended
        following = None if self.first is None else self.first.next_due
        return Applied(results=tuple(self.results.values()), now=self._now, next_due=following)

    @property
    def _written(self) -> bool:
        return any(result.verdict in (Verdict.APPLIED, Verdict.UNKNOWN) for result in self.results.values())

    @property
    def _now(self) -> int:
        return self.store.clock() if self.first is None else self.first.now

    def _again(self, which: Which, attempt: int, error: Exception) -> None:
        if attempt + 1 < _ROUNDS:
            self.todo.append((which, attempt + 1))
        elif self.first is None and not isinstance(which, Named):
            # An empty answer would say that nothing is there, and a sweep would believe it.
            raise StoreUnavailable(f"{error}; nothing was written. It is worth trying again.")
        elif isinstance(which, Named):
            for name in which.names:
                self.results.setdefault(name, Result(name, Verdict.CONTENDED))

    def _round(self, which: Which, attempt: int) -> None:
        """Select, decide and commit once."""
        store = self.store
        writing: list[Draft] = []
        try:
            with store.pool.link() as link:
                selection = store.recall(which, self.session) if attempt == 0 else None
                if selection is None:
                    selection = store.select(link, which, self.session, change=True)
                if self.first is None:
                    self.first = selection
                    self.results = {name: Result(name, Verdict.CONTENDED) for name in selection.rows}
                if not selection.alive:
                    store.abandon(link)
                    raise _NotLive
                drafts = self._drafts(selection)
                writing = [one for one in drafts if one.writes]
                lost: set[str] = set()
                if writing:
                    outcome = store.commit(link, writing, self.session, selection)
                    if not outcome.alive:
                        raise _NotLive
                    lost = outcome.lost
                else:
                    store.abandon(link)
                for one in drafts:
                    if one.name not in lost:
                        self.results[one.name] = one.result()
                        if one.error is not None:
                            store.set_aside(link, self.kind, one.name, one.error, selection.now)
        except Poisoned as error:
            self._single_out(writing, error)
        except UnknownOutcome as error:
            for one in writing:
                self.results[one.name] = Result(one.name, Verdict.UNKNOWN, error=str(error))
        else:
            if lost and attempt + 1 < _ROUNDS:
                self.todo.append((Named(self.kind, tuple(sorted(lost))), attempt + 1))

    def _drafts(self, selection: Selection) -> list[Draft]:
        """What the change wants of each; a document that has left the selection since is not handed to it."""
        drafts = []
        which = None if selection is self.first else self.which
        for name, row in selection.rows.items():
            one = draft(self.kind, name, row, self.change, selection.now, which=which)
            if one is None:
                self.results.pop(name, None)
            else:
                drafts.append(one)
        return drafts

    def _single_out(self, drafts: Sequence[Draft], error: Poisoned) -> None:
        """Repeat a refused batch one document at a time; one that fails alone is set aside."""
        if len(drafts) > 1:
            self.todo.extend((Named(self.kind, (one.name,)), 1) for one in drafts)
            return
        name = drafts[0].name
        self.results[name] = Result(name, Verdict.BLOCKED, error=str(error))
        with self.store.pool.link() as link:
            self.store.set_aside(link, self.kind, name, str(error), self.store.now(link))
